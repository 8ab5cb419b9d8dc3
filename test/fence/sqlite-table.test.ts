/** Fenced tables on SQLite, written by clients that know nothing of this library. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SqliteDatabase } from '../../src/stores/sqlite/database.ts';
import type { SqliteStore } from '../../src/stores/sqlite.ts';
import { connect, newFile, openFile } from '../stores/sqlite/files.ts';
import { sqliteClients } from './clients.ts';
import { acquire, codeOf } from './leases.ts';

const DRIVER = 'libsql';
const TTL_SECONDS = 0.2;
const COLUMNS = { run: 'id', token: 'fencing_token' };
const LOST = 'lessor: lost the lease';
const NEEDED = 'lessor: this run is leased';

const clients = await sqliteClients();

describe('fenced tables on SQLite', () => {
  let file: string;
  let store: SqliteStore;
  let database: SqliteDatabase;

  beforeEach(async () => {
    file = newFile();
    store = await openFile(DRIVER, file);
    database = connect(DRIVER, file);
    database.exec(`CREATE TABLE "the jobs" (id TEXT PRIMARY KEY, fencing_token INTEGER, status TEXT)`);
    await store.fenceTable('the jobs', COLUMNS);
  });

  afterEach(async () => {
    database.close();
    await store.close();
  });

  const sql = (text: string): string => codeOf(() => database.exec(text));
  const set = (token: number | string, status: string, id = 'job-1'): string =>
    sql(`UPDATE "the jobs" SET status = '${status}', fencing_token = ${token} WHERE id = '${id}'`);
  const insert = (token: number | string, id = 'job-1'): string =>
    sql(`INSERT INTO "the jobs" VALUES ('${id}', ${token}, 'new')`);
  const rows = (): unknown[] =>
    (database.prepare('SELECT * FROM "the jobs" ORDER BY id').all() as Record<string, unknown>[]).map((row) =>
      [row['id'], row['fencing_token'], row['status']].join(' '),
    );

  it.each(clients)(
    'B25 $name is refused with an old token, before the newer worker’s first write too, and passes with the current one',
    async ({ ask }) => {
      const late = await acquire(store, 'job-1', 'worker-a', TTL_SECONDS);
      await ask(file, `INSERT INTO "the jobs" VALUES ('job-1', ${late.fencingToken}, 'running')`);
      await sleep(TTL_SECONDS * 1000 + 5);
      const next = await acquire(store, 'job-1', 'worker-b');
      const update = (token: number | 'NULL', status: string) =>
        ask(file, `UPDATE "the jobs" SET status = '${status}', fencing_token = ${token} WHERE id = 'job-1'`);
      await expect(update(late.fencingToken, 'late')).rejects.toThrow(LOST);
      await update(next.fencingToken, 'done');
      await expect(update(late.fencingToken, 'late')).rejects.toThrow(LOST);
      await expect(update(next.fencingToken + 1, 'from the future')).rejects.toThrow(LOST);
      await expect(update('NULL', 'no token')).rejects.toThrow(NEEDED);
      await update(next.fencingToken, 'done twice');
      expect(await ask(file, 'SELECT status, fencing_token FROM "the jobs"')).toBe('done twice|2');
    },
    120_000,
  );

  it('B19 TK7 expiry alone refuses nothing; release, another run, the future and no token at all do', async () => {
    const lease = await acquire(store, 'job-1', 'worker-a', TTL_SECONDS);
    expect(insert(1)).toBe('nothing');
    await sleep(TTL_SECONDS * 1000 + 5);
    expect(set(1, 'late but alone')).toBe('nothing');
    expect(set(2, 'from the future')).toContain(LOST);
    expect(set('NULL', 'no token')).toContain(NEEDED);
    expect(insert(1, 'job-2')).toContain(LOST);
    await store.release(lease);
    expect(set(1, 'released')).toContain(LOST);
    expect(rows()).toEqual(['job-1 1 late but alone']);
  });

  it('B25 a run that was never leased takes rows without a token, until it is leased', async () => {
    expect([insert('NULL'), set('NULL', 'free'), insert('NULL', 'job-2')]).toEqual(['nothing', 'nothing', 'nothing']);
    await acquire(store, 'job-1', 'worker-a');
    expect(set('NULL', 'unfenced')).toContain(NEEDED);
    expect(sql(`DELETE FROM "the jobs" WHERE id = 'job-1'`)).toContain(NEEDED);
    expect(set(1, 'fenced')).toBe('nothing');
    expect(sql(`DELETE FROM "the jobs"`)).toBe('nothing');
  });

  it('B25 an insertion, a deletion and the move of a row to another run need the runs’ newest tokens', async () => {
    const [one] = [await acquire(store, 'job-1', 'worker-a', TTL_SECONDS), await acquire(store, 'job-2', 'worker-a')];
    expect([insert(1), insert(1, 'job-2')]).toEqual(['nothing', 'nothing']);
    await sleep(TTL_SECONDS * 1000 + 5);
    const next = await acquire(store, 'job-1', 'worker-b');
    expect(next.fencingToken).toBeGreaterThan(one.fencingToken);
    expect(sql(`DELETE FROM "the jobs"`)).toContain(LOST);
    expect(sql(`DELETE FROM "the jobs" WHERE id = 'job-2'`)).toBe('nothing');
    expect(sql(`UPDATE "the jobs" SET id = 'job-2', fencing_token = 1`)).toContain(LOST);
    expect(sql(`INSERT OR REPLACE INTO "the jobs" VALUES ('job-1', 1, 'late')`)).toContain(LOST);
    expect(set(2, 'done')).toBe('nothing');
    expect(sql(`UPDATE "the jobs" SET id = 'job-2'`)).toContain(LOST);
    expect(sql(`UPDATE "the jobs" SET id = 'job-2', fencing_token = 1`)).toBe('nothing');
    expect(rows()).toEqual(['job-2 1 done']);
  });

  it('B16 a refused statement changes none of its rows', async () => {
    await acquire(store, 'job-1', 'worker-a');
    await acquire(store, 'job-2', 'worker-a', TTL_SECONDS);
    expect([insert(1), insert(1, 'job-2')]).toEqual(['nothing', 'nothing']);
    await sleep(TTL_SECONDS * 1000 + 5);
    await acquire(store, 'job-2', 'worker-b');
    expect(sql(`UPDATE "the jobs" SET status = 'half', fencing_token = 1`)).toContain(LOST);
    expect(rows()).toEqual(['job-1 1 new', 'job-2 1 new']);
  });

  it('TK14 at a token that was issued twice the trigger goes by the fence, and refuses', async () => {
    const lease = await acquire(store, 'job-1', 'worker-a');
    database.exec('BEGIN IMMEDIATE');
    store.fence(database, lease);
    database.exec('COMMIT');
    database.exec(`UPDATE lessor_lease SET acquisition_id = 'planted'`);
    expect(insert(1)).toContain(LOST);
  });

  it('a run may be a number, given out by the database, and a token text', async () => {
    database.exec('CREATE TABLE task (id INTEGER PRIMARY KEY, token TEXT)');
    await store.fenceTable('task', { run: 'id', token: 'token' });
    await acquire(store, '2', 'worker-a');
    expect(sql('INSERT INTO task (token) VALUES (NULL)')).toBe('nothing');
    expect(sql('INSERT INTO task (token) VALUES (NULL)')).toContain(NEEDED);
    expect(sql('INSERT INTO task (token) VALUES (1)')).toBe('nothing');
  });

  it('fencing twice is harmless, a table or column that is missing is named, and the fence can be taken away', async () => {
    await store.fenceTable('the jobs', COLUMNS);
    await acquire(store, 'job-1', 'worker-a');
    expect(insert('NULL')).toContain(NEEDED);
    await expect(store.fenceTable('no table', COLUMNS)).rejects.toThrow(RangeError);
    await expect(store.fenceTable('the jobs', { run: 'id', token: 'no column' })).rejects.toThrow('no column');
    await expect(store.fenceTable('', COLUMNS)).rejects.toThrow('`table`');
    await expect(store.fenceTable('the jobs', { run: 'id' } as never)).rejects.toThrow('`columns.token`');
    expect(insert('NULL')).toContain(NEEDED);
    await store.unfenceTable('the jobs');
    await store.unfenceTable('the jobs');
    expect(insert('NULL')).toBe('nothing');
  });
});
