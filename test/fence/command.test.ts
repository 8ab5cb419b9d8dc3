/** `lessor fence-table` and `lessor migrate`, as users run them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseInvocation } from '../../src/cli/arguments.ts';
import { migratePostgres } from '../../src/stores/postgres.ts';
import { Scene } from '../cli/commands.ts';
import { lessor } from '../cli/lessor.ts';
import { findPostgres, openPool, startPostgres, type Postgres } from '../services/postgres.ts';
import { connect } from '../stores/sqlite/files.ts';
import { psqlClient, sqliteClients } from './clients.ts';
import { codeOf } from './leases.ts';

const found = await findPostgres();
const psql = await psqlClient();
const [shell] = await sqliteClients();
const COLUMNS = ['--run', 'id', '--token', 'fencing_token'];

describe('lessor fence-table', () => {
  it('fences a table of the SQLite file, and takes the fence away again', async () => {
    const scene = new Scene();
    await lessor(scene, ['list']);
    const database = connect('libsql', scene.path('leases.db'));
    database.exec(`CREATE TABLE jobs (id TEXT, fencing_token INTEGER);
      INSERT INTO lessor_lease VALUES ('job-1', 'a', 7, 'x', 1, 1, 1, NULL, NULL, NULL)`);
    const insert = (token: number): string =>
      codeOf(() => database.exec(`INSERT INTO jobs VALUES ('job-1', ${token})`));
    expect(await lessor(scene, ['fence-table', 'jobs', ...COLUMNS])).toMatchObject({ code: 0, stdout: '' });
    expect([insert(6), insert(7)]).toEqual([expect.stringContaining('lost the lease'), 'nothing']);
    expect(await lessor(scene, ['fence-table', 'jobs', '--remove'])).toMatchObject({ code: 0 });
    expect(insert(6)).toBe('nothing');
    database.close();
  });

  // Where it cannot be had: a line says so on a laptop, and CI fails.
  it.skipIf(shell === undefined)('prints SQL that the sqlite3 shell runs, and asks nothing of the store', async () => {
    const scene = new Scene();
    await lessor(scene, ['list']);
    const file = scene.path('leases.db');
    await shell!.ask(file, 'CREATE TABLE jobs (id TEXT, fencing_token INTEGER)');
    const elsewhere = { LESSOR_STORE: 'sqlite:/nowhere/at/all.db' };
    const { code, stdout } = await lessor(scene, ['fence-table', 'jobs', ...COLUMNS, '--print'], elsewhere);
    expect(code).toBe(0);
    await shell!.ask(file, stdout);
    await expect(shell!.ask(file, `INSERT INTO jobs VALUES ('job-1', 1)`)).rejects.toThrow('lessor: lost the lease');
    const removal = await lessor(scene, ['fence-table', 'jobs', '--remove', '--print'], elsewhere);
    await shell!.ask(file, removal.stdout);
    await shell!.ask(file, `INSERT INTO jobs VALUES ('job-1', 1)`);
  });

  it('a missing table, a store without tables and missing options are told as what they are', async () => {
    const scene = new Scene();
    const missing = await lessor(scene, ['fence-table', 'jobs', ...COLUMNS]);
    expect(missing).toMatchObject({ code: 64, stderr: expect.stringContaining('no such table: jobs') });
    const redis = await lessor(scene, ['fence-table', 'jobs', ...COLUMNS, '--store', 'redis://127.0.0.1:1']);
    expect(redis).toMatchObject({ code: 64, stderr: expect.stringContaining('a store with tables') });
    for (const [args, expected] of [
      [[], 'TABLE'],
      [['jobs'], '--run'],
      [['jobs', '--run', 'id'], '--token'],
      [['jobs', 'more', ...COLUMNS], 'one TABLE'],
    ] as const) {
      expect(() => parseInvocation(['fence-table', ...args])).toThrow(expected);
    }
  });
});

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.skipIf(found === null)('lessor migrate', () => {
  let server: Postgres;

  beforeAll(async () => {
    server = await startPostgres();
  });

  afterAll(() => server.close());

  it('installs the schema once, under the name that was given, and fences a table by it', async () => {
    const scene = new Scene();
    const store = ['--store', server.url, '--schema', 'my leases'];
    expect(await lessor(scene, ['migrate', ...store])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('is installed'),
    });
    expect(await lessor(scene, ['migrate', ...store])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('already'),
    });
    await server.psql('CREATE TABLE jobs (id text, fencing_token bigint)');
    expect(await lessor(scene, ['fence-table', 'jobs', ...COLUMNS, ...store])).toMatchObject({ code: 0 });
    await expect(server.psql(`INSERT INTO jobs VALUES ('job-1', 1)`)).rejects.toThrow('Lost the lease');
    expect(await lessor(scene, ['fence-table', 'public.jobs', '--remove', ...store])).toMatchObject({ code: 0 });
    await server.psql(`INSERT INTO jobs VALUES ('job-1', 1)`);
    expect(await lessor(scene, ['fence-table', 'none', ...COLUMNS, ...store])).toMatchObject({ code: 64 });
  });

  // Where it cannot be had: a line says so on a laptop, and CI fails.
  it.skipIf(psql === null)('psql runs the SQL that fence-table prints', async () => {
    const scene = new Scene();
    const pool = openPool(server.url);
    await migratePostgres({ pool });
    await pool.query('CREATE TABLE printed (id text, fencing_token bigint)');
    await pool.end();
    const { stdout } = await lessor(scene, ['fence-table', 'printed', ...COLUMNS, '--print', '--store', server.url]);
    await psql!.ask(server.url, stdout);
    await expect(psql!.ask(server.url, `INSERT INTO printed VALUES ('job-1', 1)`)).rejects.toThrow('Lost the lease');
  });

  it('a store that needs no migration, and a server that is not there, are told apart', async () => {
    const scene = new Scene();
    expect(await lessor(scene, ['migrate'])).toMatchObject({ code: 64 });
    const nowhere = 'postgres://postgres@127.0.0.1:1/postgres';
    expect(await lessor(scene, ['migrate', '--store', nowhere])).toMatchObject({ code: 69 });
    expect(() => parseInvocation(['migrate', 'now'])).toThrow('no argument');
  });
});
