/** The story that the fence is for, with real processes: a worker is stopped between its check and its write. */
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StoredLease } from '../../src/index.ts';
import { migratePostgres, PostgresStore } from '../../src/stores/postgres.ts';
import { findPostgres, openPool, startPostgres, type Postgres } from '../services/postgres.ts';
import { freshRun, until, untilPassed } from '../stores/postgres-fixtures.ts';
import { connect, newFile, openFile } from '../stores/sqlite/files.ts';
import { acquire, lost } from './leases.ts';
import { startWorker, type Way, type Worker } from './worker.ts';

const found = await findPostgres();
const TTL_SECONDS = 0.8;
const COLUMNS = { run: 'id', token: 'token' };
const LATE_WAYS: readonly Way[] = ['session', 'transaction', 'begun', 'table'];

/** A store, and the user's tables beside it. */
interface Place {
  readonly url: string;
  /** A row in each table, for a new run. */
  addRun(): Promise<string>;
  /** What stands where that way of writing writes. */
  statusOf(way: Way, runId: string): Promise<unknown>;
  /** Until the store's clock has moved. */
  passed(seconds: number): Promise<unknown>;
}

/** How a late plain update is refused; the library's own ways all throw its error. */
function refusal(way: Way): unknown {
  if (way !== 'table') return lost('superseded');
  return expect.objectContaining({ message: expect.stringMatching(/lost the lease/i) });
}

async function twoWorkers({ url, addRun }: Place) {
  const [a, b, runId] = await Promise.all([startWorker(url), startWorker(url), addRun()]);
  return { a, b, runId };
}

/** Worker-b's lease, as soon as worker-a's has expired. */
async function takeOver(b: Worker, runId: string): Promise<StoredLease> {
  let next: StoredLease | null = null;
  await until(async () => (next = await b.acquire(runId, 'worker-b', 60)) !== null);
  return next!;
}

/** The same story on each store. */
function tellsTheStory(place: () => Place): void {
  it.each(LATE_WAYS)(
    'B17 TK2 a worker stopped between its check and its write (%s) is refused after another wrote "done", and "done" stays',
    async (way) => {
      const { a, b, runId } = await twoWorkers(place());
      const lease = (await a.acquire(runId, 'worker-a', TTL_SECONDS))!;
      const stopped = await a.stopBeforeWriting(way, lease, 'late');
      const next = await takeOver(b, runId);
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
      await b.write(way, next, 'done');
      // A transaction with one old snapshot is a conflict on SQLite, and refused when it begins anew.
      const { error } = await stopped.continue();
      const conflict = expect.objectContaining({ code: 'CONFLICT' });
      expect(
        [refusal(way), conflict].some((expected) => matches(error, expected)),
        String(error),
      ).toBe(true);
      await expect(a.write(way, lease, 'late again')).rejects.toEqual(refusal(way));
      expect(await place().statusOf(way, runId)).toBe('done');
      expect(await b.write(way, next, 'done twice')).not.toBe('late');
    },
  );

  it.each(LATE_WAYS)('B18 TK2 it is refused (%s) although the newer worker has written nothing yet', async (way) => {
    const { a, b, runId } = await twoWorkers(place());
    const lease = (await a.acquire(runId, 'worker-a', TTL_SECONDS))!;
    const stopped = await a.stopBeforeWriting(way, lease, 'late');
    await takeOver(b, runId);
    const { error } = await stopped.continue();
    const conflict = expect.objectContaining({ code: 'CONFLICT' });
    expect(
      [refusal(way), conflict].some((expected) => matches(error, expected)),
      String(error),
    ).toBe(true);
    await expect(a.write(way, lease, 'late again')).rejects.toEqual(refusal(way));
    expect(await place().statusOf(way, runId)).not.toContain('late');
  });

  it.each(LATE_WAYS)('B19 it passes (%s) when its lease has expired and nobody took over', async (way) => {
    const a = await startWorker(place().url);
    const runId = await place().addRun();
    const lease = (await a.acquire(runId, 'worker-a', TTL_SECONDS))!;
    const stopped = await a.stopBeforeWriting(way, lease, 'late but alone');
    await place().passed(TTL_SECONDS);
    expect((await stopped.continue()).error).toBeUndefined();
    expect(await place().statusOf(way, runId)).toBe('late but alone');
  });
}

function matches(value: unknown, expected: unknown): boolean {
  return (expected as { asymmetricMatch(value: unknown): boolean }).asymmetricMatch(value);
}

describe('workers stopped on SQLite', () => {
  let place: Place;

  beforeEach(async () => {
    const file = newFile();
    await using store = await openFile('libsql', file);
    const database = connect('libsql', file);
    database.exec('CREATE TABLE job (id TEXT PRIMARY KEY, status TEXT)');
    database.exec('CREATE TABLE fenced (id TEXT PRIMARY KEY, status TEXT, token INTEGER)');
    await store.fenceTable('fenced', COLUMNS);
    database.close();
    place = sqlitePlace(file);
  });

  tellsTheStory(() => place);

  it('B20 TK6 a worker stopped inside a fenced transaction keeps the file: unavailable and not lost, until it goes on', async () => {
    const { a, b, runId } = await twoWorkers(place);
    const lease = (await a.acquire(runId, 'worker-a', TTL_SECONDS))!;
    const stopped = await a.stopBeforeWriting('fenced', lease, 'in flight');
    await place.passed(TTL_SECONDS);
    await expect(b.acquire(runId, 'worker-b', 60)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: true,
    });
    expect((await stopped.continue()).error).toBeUndefined();
    const next = await takeOver(b, runId);
    expect(await b.write('fenced', next, 'done')).toBe('in flight');
    await expect(a.write('fenced', lease, 'late')).rejects.toEqual(lost('superseded'));
  });
});

function sqlitePlace(file: string): Place {
  const all = async (sql: string, value: string): Promise<unknown> => {
    const database = connect('libsql', file);
    database.exec('PRAGMA busy_timeout = 5000');
    const [row] = database.prepare(sql).all(value) as Record<string, unknown>[];
    database.close();
    return row?.['status'];
  };
  return {
    url: `sqlite:${file}`,
    addRun: async () => {
      const runId = freshRun();
      const database = connect('libsql', file);
      database.exec('PRAGMA busy_timeout = 5000');
      database.exec(`INSERT INTO job VALUES ('${runId}', 'new'); INSERT INTO fenced VALUES ('${runId}', 'new', NULL)`);
      database.close();
      return runId;
    },
    statusOf: async (way, runId) => {
      if (way !== 'session') return all(`SELECT status FROM ${way === 'table' ? 'fenced' : 'job'} WHERE id = ?`, runId);
      return (await all(`SELECT json ->> 'status' AS status FROM lessor_document WHERE run_id = ?`, runId)) ?? 'new';
    },
    passed: (seconds) => sleep(seconds * 1000 + 5),
  };
}

describe.skipIf(found === null)('workers stopped on PostgreSQL', () => {
  let server: Postgres;
  let pool: pg.Pool;
  let store: PostgresStore;
  let place: Place;

  beforeAll(async () => {
    server = await startPostgres();
    pool = openPool(server.url);
    await migratePostgres({ pool });
    store = await PostgresStore.open({ pool });
    await pool.query('CREATE TABLE job (id text PRIMARY KEY, status text)');
    await pool.query('CREATE TABLE fenced (id text PRIMARY KEY, status text, token bigint)');
    await store.fenceTable('fenced', COLUMNS);
    place = postgresPlace(server.url, pool);
  });

  afterAll(async () => {
    await store.close();
    await pool.end();
    await server.close();
  });

  tellsTheStory(() => place);

  it('B21 TK6 a worker stopped inside a fenced transaction: take-over at the ttl, a bounded wait, other runs go on, and its write is seen', async () => {
    const { a, b, runId } = await twoWorkers(place);
    const lease = (await a.acquire(runId, 'worker-a', TTL_SECONDS))!;
    const stopped = await a.stopBeforeWriting('fenced', lease, 'in flight');
    await place.passed(TTL_SECONDS);
    const next = (await b.acquire(runId, 'worker-b', 60))!;
    const refused = expect.objectContaining({ code: 'STORE_UNAVAILABLE', retryable: true });
    await expect(b.write('fenced', next, 'done')).rejects.toEqual(refused);
    await expect(b.write('session', next, 'done')).rejects.toEqual(refused);
    const other = await acquire(store, await place.addRun(), 'worker-c');
    await b.write('fenced', other, 'other run');
    expect((await stopped.continue()).error).toBeUndefined();
    expect(await b.write('fenced', next, 'done')).toBe('in flight');
    await expect(a.write('fenced', lease, 'late')).rejects.toEqual(lost('superseded'));
    expect(await place.statusOf('fenced', runId)).toBe('done');
  });

  it('B21 TK6 the server ends the stopped worker’s transaction by idle_in_transaction_session_timeout, and its write is gone', async () => {
    const { runId, a, b } = await twoWorkers({
      ...place,
      url: `${place.url}?options=-c%20idle_in_transaction_session_timeout%3D1000`,
    });
    const lease = (await a.acquire(runId, 'worker-a', TTL_SECONDS))!;
    const stopped = await a.stopBeforeWriting('fenced', lease, 'in flight');
    const next = await takeOver(b, runId);
    const unavailable = async (): Promise<unknown> => {
      try {
        return await b.write('fenced', next, 'done');
      } catch (error) {
        expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' });
        return undefined;
      }
    };
    await until(async () => (await unavailable()) === 'new');
    expect((await stopped.continue()).error).toBeDefined();
    expect(await place.statusOf('fenced', runId)).toBe('done');
  });
});

function postgresPlace(url: string, pool: pg.Pool): Place {
  return {
    url,
    addRun: async () => {
      const runId = freshRun();
      await pool.query(`INSERT INTO job VALUES ($1, 'new')`, [runId]);
      await pool.query(`INSERT INTO fenced VALUES ($1, 'new', NULL)`, [runId]);
      return runId;
    },
    statusOf: async (way, runId) => {
      const { rows } =
        way === 'session'
          ? await pool.query(`SELECT json::json ->> 'status' AS status FROM lessor.document WHERE run_id = $1`, [runId])
          : await pool.query(`SELECT status FROM ${way === 'table' ? 'fenced' : 'job'} WHERE id = $1`, [runId]);
      return rows[0]?.status ?? 'new';
    },
    passed: (seconds) => untilPassed(pool, seconds),
  };
}
