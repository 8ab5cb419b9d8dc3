/** A pgbouncer in transaction mode before a test's PostgreSQL: every transaction may run on another connection. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { aptInstall } from './apt.ts';
import type { Postgres } from './postgres.ts';
import {
  findBinary,
  freePort,
  makeFolder,
  removeFolder,
  reportAbsent,
  startService,
  unprivilegedUser,
  untilReady,
} from './service.ts';

export interface Pgbouncer {
  readonly url: string;
  close(): Promise<void>;
}

/** The program's path, or null with a printed line where it cannot be had. Fails in CI then. */
export async function findPgbouncer(): Promise<string | null> {
  const find = (): string | null => findBinary('pgbouncer', ['/usr/sbin']);
  const found = find() ?? ((await aptInstall('pgbouncer')) ? find() : null);
  return found ?? reportAbsent('pgbouncer', 'not on the PATH, and not to be had by apt-get');
}

/** Starts one for that database, with so many connections behind it. */
export async function startPgbouncer(
  postgres: Postgres,
  database: string,
  { connections = 4, settings = {} }: { connections?: number; settings?: Readonly<Record<string, string>> } = {},
): Promise<Pgbouncer> {
  const program = await findPgbouncer();
  if (program === null) throw new Error('pgbouncer is absent: ask `findPgbouncer` first');
  const user = unprivilegedUser('postgres');
  const folder = makeFolder('pgbouncer', user);
  const port = await freePort();
  const file = join(folder, 'pgbouncer.ini');
  const given = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: 'transaction',
    default_pool_size: connections,
    max_client_conn: 500,
    ...settings,
  };
  const lines = Object.entries(given).map(([name, value]) => `${name} = ${value}`);
  const target = `host=127.0.0.1 port=${postgres.port} dbname=${database} user=postgres`;
  writeFileSync(file, `[databases]\n${database} = ${target}\n[pgbouncer]\n${lines.join('\n')}\n`);
  const service = startService({
    name: 'pgbouncer',
    command: program,
    args: [file],
    folder,
    user,
    endSignal: 'SIGINT',
  });
  const url = `postgres://postgres@127.0.0.1:${port}/${database}`;
  await untilReady('pgbouncer', service, async () => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('SELECT 1');
    await client.end();
    return true;
  });
  return {
    url,
    close: async () => {
      await service.stop();
      await removeFolder(folder);
    },
  };
}
