/** A worker stopped in the middle, on PostgreSQL. */
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migratePostgres, PostgresStore } from '../../src/stores/postgres.ts';
import { findPostgres, openPool, startPostgres, type Postgres } from '../services/postgres.ts';
import { freshRun, until, untilPassed } from '../stores/postgres-fixtures.ts';
import { acquire, lost } from './leases.ts';
import { lostByMessage, takeOver, tellsTheStory, TTL_SECONDS, twoWorkers, type Place } from './stopped-worker.ts';

const found = await findPostgres();

// Where it cannot be had: a line says so on a laptop, and CI fails.
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
    await store.fenceTable('fenced', { run: 'id', token: 'token' });
    place = postgresPlace(server.url, pool);
  });

  afterAll(async () => {
    await store.close();
    await pool.end();
    await server.close();
  });

  tellsTheStory(['session', 'transaction', 'begun', 'table'], () => place);

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
    refusal: (way) => (way === 'table' ? lostByMessage() : lost('superseded')),
  };
}
