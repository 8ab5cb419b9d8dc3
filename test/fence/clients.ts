/** Clients that know nothing of this library: the databases' own shells, and Python. */
import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { aptInstall } from '../services/apt.ts';
import { findPostgres } from '../services/postgres.ts';
import { findRedis } from '../services/redis.ts';
import { findBinary, reportAbsent } from '../services/service.ts';

const run = promisify(execFile);

export interface Client {
  readonly name: string;
  /** Runs the SQL and returns what it printed. @throws what the client complained of. */
  ask(database: string, sql: string): Promise<string>;
}

const PYTHON = `
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
with database:
    rows = database.execute(sys.argv[2]).fetchall()
print(*("|".join(map(str, row)) for row in rows), sep="\\n")
`;

/** The sqlite3 shell, from the PATH or by apt-get, and Python's own module. */
export async function sqliteClients(): Promise<Client[]> {
  if (findBinary('sqlite3') === null) await aptInstall('sqlite3');
  const [shell, python] = [findBinary('sqlite3'), findBinary('python3')];
  if (shell === null) reportAbsent('the sqlite3 shell', 'no `sqlite3` on the PATH or by apt-get');
  if (python === null) reportAbsent("Python's sqlite3", 'no `python3` on the PATH');
  return [
    ...(shell ? [client('the sqlite3 shell', (file, sql) => run(shell, ['-bail', file, sql]))] : []),
    ...(python ? [client('Python', (file, sql) => run(python, ['-c', PYTHON, file, sql]))] : []),
  ];
}

/** psql, which comes with the server or stands beside it. */
export async function psqlClient(): Promise<Client | null> {
  const folder = await findPostgres();
  const program = folder === null ? null : findBinary('psql', [folder, join(dirname(folder), 'bin')]);
  if (program === null) return reportAbsent('psql', 'no `psql` on the PATH or beside the server');
  return client('psql', (url, sql) => run(program, ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-c', sql, url]));
}

export interface RedisShell {
  /** Sends one command and returns what it printed. @throws what the server answered, when that is an error. */
  send(url: string, ...words: readonly (string | number)[]): Promise<string>;
}

/** redis-cli, which comes with the server or stands beside it. */
export async function redisShell(): Promise<RedisShell | null> {
  const server = await findRedis();
  const program = server === null ? null : findBinary('redis-cli', [dirname(server)]);
  if (program === null) return reportAbsent('redis-cli', 'no `redis-cli` on the PATH or beside the server');
  return { send: async (url, ...words) => (await run(program, ['-e', '-u', url, ...words.map(String)])).stdout.trim() };
}

function client(name: string, ask: (database: string, sql: string) => Promise<{ stdout: string }>): Client {
  return { name, ask: async (database, sql) => (await ask(database, sql)).stdout.trim() };
}
