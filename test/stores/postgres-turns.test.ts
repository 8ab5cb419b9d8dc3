/** Acquires and releases of one moment, which share a statement. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { OutcomeUnknownError } from '../../src/errors.ts';
import type { StoredLease } from '../../src/lease.ts';
import { LeaseManager } from '../../src/manager/lease-manager.ts';
import { migratePostgres, PostgresStore } from '../../src/stores/postgres.ts';
import type { AcquireResult } from '../../src/stores/store.ts';
import { findPostgres, openPool, startPostgres, type Postgres } from '../services/postgres.ts';
import { ask, freshRun, granted, lock, pause, untilWaiting } from './postgres-fixtures.ts';

const found = await findPostgres();

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.skipIf(found === null)('PostgreSQL, calls of one turn', { timeout: 30_000 }, () => {
  let server: Postgres;
  let pool: pg.Pool;
  let store: PostgresStore;
  let connections = 0;
  let runIds: readonly string[];

  beforeAll(async () => {
    server = await startPostgres();
    pool = openPool(server.url);
    pool.on('acquire', () => (connections += 1));
    await migratePostgres({ pool });
    store = await PostgresStore.open({ pool });
  }, 60_000);

  beforeEach(() => {
    runIds = Array.from({ length: 40 }, freshRun);
  });

  afterAll(async () => {
    await store.close();
    await pool.end();
    await server.close();
  });

  it('WK1 a pool of one connection is no trap: whoever waits polls, and gets the run', async () => {
    const single = new pg.Pool({ connectionString: server.url, max: 1 });
    await using own = await PostgresStore.open({ pool: single });
    await using leases = new LeaseManager(own, { ttlSeconds: 5, pollSeconds: 0.1 });
    const lease = await granted(store, ask(runIds[0]!, { workerId: 'worker-b' }));
    const waiting = leases.acquire(runIds[0]!, { waitSeconds: 4 });
    await pause(0.3);
    await store.release(lease);
    expect((await waiting).fencingToken).toBe(lease.fencingToken + 1);
    await leases.close();
    await own.close();
    await single.end();
  });

  const leasesOf = (results: readonly AcquireResult[]): StoredLease[] =>
    results.map((result) => (result as { lease: StoredLease }).lease);
  const acquireAll = async (): Promise<StoredLease[]> =>
    leasesOf(await Promise.all(runIds.map((id) => store.acquire(ask(id)))));
  const LOCK = 'SELECT FROM lessor.lease WHERE run_id = $1 FOR UPDATE';

  it('B2 B6 forty runs are acquired in one statement and released in another, and their tokens go on rising', async () => {
    for (const fencingToken of [1, 2, 3]) {
      const before = connections;
      const leases = await acquireAll();
      expect(leases.map(({ runId }) => runId)).toEqual(runIds);
      expect(leases.map((lease) => lease.fencingToken)).toEqual(runIds.map(() => fencingToken));
      expect(new Set(leases.map(({ acquisitionId }) => acquisitionId)).size).toBe(40);
      expect(await Promise.all(leases.map((lease) => store.release(lease)))).toEqual(runIds.map(() => true));
      expect(connections - before).toBe(2);
    }
  });

  it('B2 the tokens of forty runs are above what their fence rows have shown', async () => {
    await pool.query("INSERT INTO lessor.fence SELECT unnest($1::text[]), 41, 'planted'", [runIds]);
    expect((await acquireAll()).map(({ fencingToken }) => fencingToken)).toEqual(runIds.map(() => 42));
  });

  it('B3 B4 each gets the answer that it would get alone: granted, held by another, extended, refused to its own worker', async () => {
    const [own, others, repeated] = [freshRun(), freshRun(), freshRun()];
    const lease = await granted(store, ask(own));
    await granted(store, ask(others, { workerId: 'worker-b' }));
    const first = ask(repeated);
    await granted(store, first);
    const requests = [
      ask(own),
      ask(own, { reacquire: 'refuse', workerId: 'worker-a' }),
      ask(others),
      { ...first, reacquire: 'refuse' as const },
      ...runIds.map((runId) => ask(runId)),
    ];
    const [extended, refused, held, again, ...free] = await Promise.all(
      requests.map((request) => store.acquire(request)),
    );
    expect(extended).toMatchObject({ status: 'granted', extended: true, lease: { fencingToken: lease.fencingToken } });
    expect(refused).toMatchObject({ status: 'held', workerId: 'worker-a', fencingToken: 1 });
    expect(held).toMatchObject({ status: 'held', workerId: 'worker-b', fencingToken: 1 });
    expect((held as { retryAfterSeconds: number }).retryAfterSeconds).toBeGreaterThan(20);
    expect(again).toMatchObject({ status: 'granted', extended: true });
    for (const result of free)
      expect(result).toMatchObject({ status: 'granted', extended: false, lease: { fencingToken: 1 } });
  });

  it('AQ1 of forty workers that ask for one run at once one gets it', async () => {
    const runId = freshRun();
    const results = await Promise.all(runIds.map((workerId) => store.acquire(ask(runId, { workerId }))));
    expect(results.filter(({ status }) => status === 'granted')).toHaveLength(1);
  });

  it('B6 of two releases of one lease in one turn one succeeds, and a stranger’s none', async () => {
    const leases = await acquireAll();
    const strangers = leases.slice(0, 2).map((lease) => ({ ...lease, acquisitionId: randomUUID() }));
    const wrongTokens = leases.slice(2, 4).map((lease) => ({ ...lease, fencingToken: 7 }));
    const asked = [...strangers, ...wrongTokens, ...leases, ...leases.slice(0, 3)];
    const released = await Promise.all(asked.map((lease) => store.release(lease)));
    expect(released.slice(0, 4)).toEqual([false, false, false, false]);
    expect(released.filter(Boolean)).toHaveLength(40);
  });

  it('B6 of forty releases with another worker, token or lease’s acquisition none frees a run', async () => {
    const leases = await acquireAll();
    const wrong = leases.map((lease, index) => {
      if (index % 3 === 0) return { ...lease, fencingToken: 7 };
      return index % 3 === 1
        ? { ...lease, workerId: 'worker-b' }
        : { ...lease, acquisitionId: leases[0]!.acquisitionId };
    });
    expect(await Promise.all(wrong.map((lease) => store.release(lease)))).toEqual(runIds.map(() => false));
    expect(await Promise.all(leases.map((lease) => store.release(lease)))).toEqual(runIds.map(() => true));
  });

  it.each(['acquire', 'release'] as const)(
    'C8 a run whose row somebody keeps locked delays the %s of no other run',
    async (call) => {
      const leases = await acquireAll();
      if (call === 'acquire') await Promise.all(leases.map((lease) => store.release(lease)));
      const unlock = await lock(pool, LOCK, [runIds[5]]);
      const done: string[] = [];
      const all = leases.map(async (lease) => {
        const { runId } = lease;
        const good = call === 'acquire' ? await store.acquire(ask(runId)) : await store.release(lease);
        expect(good).toBeTruthy();
        done.push(runId);
      });
      await untilWaiting(pool, 1);
      await Promise.all(all.filter((_, index) => index !== 5));
      expect(done).toHaveLength(39);
      await unlock('COMMIT');
      await all[5];
      expect(await store.read(runIds[5]!)).toMatchObject({ state: call === 'acquire' ? 'held' : 'free' });
    },
  );

  it('C8 a new run that somebody has inserted and not committed delays the others by a moment', async () => {
    const insert = `INSERT INTO lessor.lease (run_id, worker_id, fencing_token, acquisition_id, ttl_seconds, acquired_at, expires_at)
      VALUES ($1, 'other', 7, 'other', 1, now(), now())`;
    const unlock = await lock(pool, insert, [runIds[5]]);
    const all = runIds.map((runId) => store.acquire(ask(runId)));
    await Promise.all(all.filter((_, index) => index !== 5));
    await unlock('COMMIT');
    expect(await all[5]).toMatchObject({ status: 'granted', lease: { fencingToken: 8 } });
  });

  it('A15 a run that has used up its tokens fails alone', async () => {
    await pool.query(
      `INSERT INTO lessor.lease (run_id, worker_id, fencing_token, acquisition_id, ttl_seconds, acquired_at, expires_at)
       VALUES ($1, 'other', 9007199254740991, 'other', 1, now(), now())`,
      [runIds[5]],
    );
    const results = await Promise.allSettled(runIds.map((runId) => store.acquire(ask(runId))));
    expect(results.map(({ status }) => status)).toEqual(
      runIds.map((_, index) => (index === 5 ? 'rejected' : 'fulfilled')),
    );
    expect((results[5] as PromiseRejectedResult).reason).toBeInstanceOf(RangeError);
  });

  it('C12 a caller that gives up leaves the others alone, and does not know what became of its own call', async () => {
    const controllers = runIds.map(() => new AbortController());
    const reason = new Error('enough');
    controllers[0]!.abort(reason);
    const all = runIds.map((runId, index) => store.acquire(ask(runId), { signal: controllers[index]!.signal }));
    const settled = Promise.allSettled(all);
    await new Promise((resolve) => process.nextTick(resolve));
    controllers[1]!.abort(reason);
    const [first, second, ...others] = await settled;
    expect(first).toEqual({ status: 'rejected', reason });
    expect((second as PromiseRejectedResult).reason).toBeInstanceOf(OutcomeUnknownError);
    for (const { status } of others) expect(status).toBe('fulfilled');
    expect(await store.read(runIds[0]!)).toBeNull();
  });

  it('C13 whoever follows a run hears of a grant and a release among many', async () => {
    const controller = new AbortController();
    const heard: string[] = [];
    const follow = async (): Promise<void> => {
      for await (const { runId } of store.changes([runIds[7]!], controller)) heard.push(runId);
    };
    const following = follow().catch(() => undefined);
    await expect.poll(() => heard.length).toBeGreaterThan(0); // the hint that it has begun
    const before = heard.length;
    const leases = await acquireAll();
    await expect.poll(() => heard.length).toBeGreaterThan(before);
    const between = heard.length;
    await Promise.all(leases.map((lease) => store.release(lease)));
    await expect.poll(() => heard.length).toBeGreaterThan(between);
    controller.abort();
    await following;
  });
});
