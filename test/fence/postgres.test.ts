/** The fence in transactions of the user's own on PostgreSQL. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { StoredLease } from '../../src/index.ts';
import { migratePostgres, PostgresStore, type PostgresTransaction } from '../../src/stores/postgres.ts';
import { findPostgres, openPool, startPostgres, type Postgres } from '../services/postgres.ts';
import { freshRun, untilPassed, untilWaiting } from '../stores/postgres-fixtures.ts';
import { acquire, lost } from './leases.ts';
import { openTransaction, type Transaction } from './transaction.ts';

const found = await findPostgres();
const TTL_SECONDS = 0.3;
const ISOLATION = ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'] as const;
const conflict = expect.objectContaining({ code: 'CONFLICT', retryable: true });

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.skipIf(found === null)('the fence on PostgreSQL', () => {
  let server: Postgres;
  let pool: pg.Pool;
  let store: PostgresStore;

  beforeAll(async () => {
    server = await startPostgres({ deadlock_timeout: '100ms' });
    pool = openPool(server.url);
    await migratePostgres({ pool });
    await pool.query('CREATE TABLE job (id text PRIMARY KEY, status text)');
    store = await PostgresStore.open({ pool });
  });

  afterAll(async () => {
    await store.close();
    await pool.end();
    await server.close();
  });

  const begin = (isolation: string = 'READ COMMITTED'): Promise<Transaction> => openTransaction(pool, isolation);

  async function newJob(): Promise<string> {
    const runId = freshRun();
    await pool.query(`INSERT INTO job VALUES ($1, 'new')`, [runId]);
    return runId;
  }

  /** One fenced transaction that writes the status. */
  async function write(lease: StoredLease, status: string, isolation?: string): Promise<void> {
    const tx = await begin(isolation);
    try {
      await store.fence(tx.client, lease);
      await set(tx.client, lease.runId, status);
    } catch (error) {
      await tx.end('ROLLBACK');
      throw error;
    }
    await tx.end('COMMIT');
  }

  async function set(client: PostgresTransaction, runId: string, status: string): Promise<void> {
    await client.query('UPDATE job SET status = $2 WHERE id = $1', [runId, status]);
  }

  async function statusOf(runId: string, client: PostgresTransaction | pg.Pool = pool): Promise<unknown> {
    return (await (client as pg.Pool).query('SELECT status FROM job WHERE id = $1', [runId])).rows[0]?.status;
  }

  async function takeOver(runId: string, beforeExpiry?: (late: StoredLease) => Promise<unknown>) {
    const late = await acquire(store, runId, 'worker-a', TTL_SECONDS);
    await beforeExpiry?.(late);
    await untilPassed(pool, TTL_SECONDS);
    return { late, next: await acquire(store, runId, 'worker-b') };
  }

  describe.each(ISOLATION)('in %s', (isolation) => {
    it('B17 B18 TK2 a late worker is refused, before the newer one has written and after it', async () => {
      const { late, next } = await takeOver(await newJob(), (lease) => write(lease, 'running', isolation));
      await expect(write(late, 'late', isolation)).rejects.toEqual(lost('superseded'));
      await write(next, 'done', isolation);
      await expect(write(late, 'late', isolation)).rejects.toEqual(lost('superseded'));
      expect(await statusOf(next.runId)).toBe('done');
    });

    it('B19 TK7 the owner writes again and again, after a renewal, and after its expiry while nobody took over', async () => {
      const lease = await acquire(store, await newJob(), 'worker-a', TTL_SECONDS);
      await write(lease, 'one', isolation);
      await write(lease, 'two', isolation);
      await store.renew([lease], TTL_SECONDS);
      await write(lease, 'three', isolation);
      await untilPassed(pool, TTL_SECONDS);
      await write(lease, 'late but alone', isolation);
      expect(await statusOf(lease.runId)).toBe('late but alone');
    });

    it.each(['its first', 'its second'])(
      'B18 B20 TK3 %s fenced transaction in flight: take-over does not wait, the newer worker’s first access does, and sees it',
      async (which) => {
        const late = await acquire(store, await newJob(), 'worker-a', TTL_SECONDS);
        if (which === 'its second') await write(late, 'earlier');
        const flight = await begin(isolation);
        await store.fence(flight.client, late);
        await set(flight.client, late.runId, 'in flight');
        await untilPassed(pool, TTL_SECONDS);
        const next = await acquire(store, late.runId, 'worker-b');
        const tx = await begin(isolation);
        const fenced = store.fence(tx.client, next).then(
          () => statusOf(late.runId, tx.client),
          (error: unknown) => error,
        );
        await untilWaiting(pool, 1);
        await flight.end('COMMIT');
        // One snapshot from before the commit cannot show it: then the access fails, and the next one shows it.
        expect(await fenced).toEqual(isolation === 'READ COMMITTED' ? 'in flight' : conflict);
        await tx.end('ROLLBACK');
        const again = await begin(isolation);
        await store.fence(again.client, next);
        expect(await statusOf(late.runId, again.client)).toBe('in flight');
        await set(again.client, late.runId, 'done');
        await again.end('COMMIT');
        await expect(write(late, 'late', isolation)).rejects.toEqual(lost('superseded'));
        expect(await statusOf(late.runId)).toBe('done');
      },
    );

    it('B17 TK3 a transaction that was open all along is refused at its fence, however old its snapshot', async () => {
      const runId = await newJob();
      const late = await acquire(store, runId, 'worker-a', TTL_SECONDS);
      const tx = await begin(isolation);
      await statusOf(runId, tx.client);
      await untilPassed(pool, TTL_SECONDS);
      await acquire(store, runId, 'worker-b');
      const expected = isolation === 'READ COMMITTED' ? lost('superseded') : conflict;
      await expect(store.fence(tx.client, late)).rejects.toEqual(expected);
      await tx.end('ROLLBACK');
      await expect(write(late, 'late', isolation)).rejects.toEqual(lost('superseded'));
      expect(await statusOf(runId)).toBe('new');
    });

    it('B4 TK8 a second handle of the same worker waits for the first one’s transaction, and cuts it off', async () => {
      const first = await acquire(store, await newJob(), 'worker-a');
      const flight = await begin(isolation);
      await store.fence(flight.client, first);
      await set(flight.client, first.runId, 'in flight');
      const acquiring = acquire(store, first.runId, 'worker-a');
      await untilWaiting(pool, 1);
      expect(await store.renew([first], 60)).toMatchObject([{ status: 'renewed' }]);
      await flight.end('COMMIT');
      const second = await acquiring;
      expect(second.fencingToken).toBe(first.fencingToken);
      await expect(write(first, 'late', isolation)).rejects.toEqual(lost('superseded'));
      expect(await statusOf(first.runId)).toBe('in flight');
      await write(second, 'second', isolation);
    });
  });

  it('B19 a released lease does not pass, nor a revoked one, nor a foreign, future or missing token', async () => {
    const released = await acquire(store, await newJob(), 'worker-a');
    await write(released, 'new');
    await store.release(released);
    await expect(write(released, 'x')).rejects.toEqual(lost('released'));
    const revoked = await acquire(store, await newJob(), 'worker-a');
    await store.revoke(revoked.runId, { by: 'operator', reason: 'stuck' });
    await expect(write(revoked, 'x')).rejects.toEqual(lost('revoked'));
    const lease = await acquire(store, await newJob(), 'worker-a');
    await expect(write({ ...lease, fencingToken: 9 }, 'x')).rejects.toEqual(lost('unknown'));
    await expect(write({ ...lease, workerId: 'worker-b' }, 'x')).rejects.toEqual(lost('unknown'));
    await expect(write({ ...lease, runId: freshRun() }, 'x')).rejects.toEqual(lost('unknown'));
    await expect(write({ ...lease, acquisitionId: released.acquisitionId }, 'x')).rejects.toEqual(lost('superseded'));
    await expect(write({ ...lease, fencingToken: null as never }, 'x')).rejects.toThrow(TypeError);
    const { rows } = await pool.query('SELECT FROM lessor.fence WHERE run_id = $1', [lease.runId]);
    expect(rows).toEqual([]);
  });

  it('B18 a release while a fenced transaction is in flight does not wait for it, and refuses the next one', async () => {
    const lease = await acquire(store, await newJob(), 'worker-a');
    const tx = await begin();
    await store.fence(tx.client, lease);
    await store.release(lease);
    await set(tx.client, lease.runId, 'in flight');
    await tx.end('COMMIT');
    await expect(write(lease, 'late')).rejects.toEqual(lost('released'));
  });

  it('B16 a savepoint that is rolled back takes the fence with it, and an error of the fence can be rolled back to one', async () => {
    const { late, next } = await takeOver(await newJob());
    const tx = await begin();
    await tx.client.query('SAVEPOINT before');
    await store.fence(tx.client, next);
    await tx.client.query('ROLLBACK TO before');
    await expect(store.fence(tx.client, late)).rejects.toEqual(lost('superseded'));
    await tx.client.query('ROLLBACK TO before');
    await store.fence(tx.client, next);
    await set(tx.client, next.runId, 'done');
    await tx.end('COMMIT');
    expect(await statusOf(next.runId)).toBe('done');
  });

  it('TK14 at an equal token another acquisition is refused, whichever wrote first, and a token is above a planted fence', async () => {
    const lease = await acquire(store, await newJob(), 'worker-a');
    await write(lease, 'first');
    await pool.query('UPDATE lessor.lease SET acquisition_id = $2 WHERE run_id = $1', [lease.runId, 'planted']);
    await expect(write({ ...lease, acquisitionId: 'planted' }, 'x')).rejects.toEqual(lost('superseded'));
    await expect(write(lease, 'x')).rejects.toEqual(lost('superseded'));
    await pool.query('UPDATE lessor.fence SET fencing_token = 40 WHERE run_id = $1', [lease.runId]);
    await store.revoke(lease.runId, { by: 'operator', reason: 'planted' });
    const next = await acquire(store, lease.runId, 'worker-b');
    expect(next.fencingToken).toBe(41);
    await write(next, 'second');
    expect(await statusOf(lease.runId)).toBe('second');
  });

  it('B21 TK6 the wait for an older transaction is bounded, by the caller’s own lock_timeout too, and other runs notice nothing', async () => {
    const late = await acquire(store, await newJob(), 'worker-a', TTL_SECONDS);
    const flight = await begin();
    await store.fence(flight.client, late);
    await untilPassed(pool, TTL_SECONDS);
    const next = await acquire(store, late.runId, 'worker-b');
    const patient = write(next, 'patient').then(
      () => 'written',
      (error: unknown) => error,
    );
    const hasty = await begin();
    await hasty.client.query(`SET LOCAL lock_timeout = '50ms'`);
    await expect(store.fence(hasty.client, next)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    await hasty.end('ROLLBACK');
    await write(await acquire(store, await newJob(), 'worker-a'), 'other run');
    expect(await patient).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringContaining('still open') });
    await flight.end('ROLLBACK');
    await write(next, 'done');
  });

  it('B21 the fence leaves the lock_timeout of the transaction as it was', async () => {
    const lease = await acquire(store, await newJob(), 'worker-a');
    for (const timeout of ['0', '7s']) {
      const tx = await begin();
      await tx.client.query(`SET LOCAL lock_timeout = '${timeout}'`);
      await store.fence(tx.client, lease);
      expect((await tx.client.query('SHOW lock_timeout', [])).rows[0]).toEqual({ lock_timeout: timeout });
      await tx.end('ROLLBACK');
    }
  });

  it('two fences in two orders do not hang: one of the transactions is a conflict', async () => {
    const [x, y] = [await acquire(store, await newJob(), 'worker-a'), await acquire(store, await newJob(), 'worker-a')];
    const [one, two] = [await begin(), await begin()];
    await store.fence(one.client, x);
    await store.fence(two.client, y);
    const crossed = [store.fence(one.client, y), store.fence(two.client, x)];
    const results = await Promise.allSettled(
      crossed.map((fenced, index) => fenced.finally(() => [one, two][index]!.end('ROLLBACK'))),
    );
    const refused = results.filter((result) => result.status === 'rejected');
    expect(refused.map(({ reason }) => reason as unknown)).toEqual([conflict]);
  });

  it('I a pool, a client outside a transaction, a failed transaction, another database and what is none are refused', async () => {
    const lease = await acquire(store, await newJob(), 'worker-a');
    await expect(store.fence(pool as never, lease)).rejects.toThrow('pool.connect()');
    for (const wrong of [undefined, null, 7, {}, () => 1]) {
      await expect(store.fence(wrong as never, lease)).rejects.toThrow(TypeError);
    }
    const client = await pool.connect();
    onTestFinished(() => client.release(true));
    await expect(store.fence(client, lease)).rejects.toThrow('BEGIN');
    const bare: PostgresTransaction = { query: (text, values) => client.query(text, values) };
    await expect(store.fence(bare, lease)).rejects.toThrow('BEGIN');
    await client.query('BEGIN');
    await client.query('SELECT 1/0').catch(() => undefined);
    for (const tx of [client, bare]) {
      await expect(store.fence(tx, lease)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    }
    await client.query('ROLLBACK');
    await client.query('BEGIN');
    await store.fence(bare, lease);
    await client.query('ROLLBACK');
  });

  it('I a transaction in another database is refused, whether that has leases or not', async () => {
    const lease = await acquire(store, await newJob(), 'worker-a');
    const url = await server.createDatabase(randomUUID());
    const elsewhere = openPool(url);
    for (const has of ['no leases', 'leases of its own']) {
      const tx = await openTransaction(elsewhere, 'READ COMMITTED');
      await expect(store.fence(tx.client, lease), has).rejects.toThrow('another one');
      await tx.end('ROLLBACK');
      await migratePostgres({ pool: elsewhere });
    }
    await elsewhere.end();
  });

  it('several statements that are sent as one text are a transaction; one alone is not', async () => {
    const { runId, workerId, fencingToken } = await acquire(store, await newJob(), 'worker-a');
    const fence = `SELECT lessor.fence('${runId}', '${workerId}', ${fencingToken})`;
    await pool.query(`${fence}; UPDATE job SET status = 'one text' WHERE id = '${runId}'`);
    await pool.query(`BEGIN; ${fence}; UPDATE job SET status = 'two' WHERE id = '${runId}'; COMMIT`);
    expect(await statusOf(runId)).toBe('two');
    await expect(pool.query(`${fence}; `)).rejects.toMatchObject({ code: 'LS014' });
    await expect(pool.query(`BEGIN; SELECT lessor.fence('${runId}', '${workerId}', NULL)`)).rejects.toThrow('token');
  });
});
