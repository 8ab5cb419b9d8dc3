/** A transaction that the store begins, fences, commits and rolls back. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { StateLostError, type StoredLease } from '../../src/index.ts';
import { migratePostgres, PostgresStore, type TransactionOptions } from '../../src/stores/postgres.ts';
import { findPgbouncer, startPgbouncer } from '../services/pgbouncer.ts';
import { findPostgres, openPool, startPostgres, type Postgres } from '../services/postgres.ts';
import { startProxy } from '../services/proxy.ts';
import { freshRun, untilPassed, untilWaiting } from '../stores/postgres-fixtures.ts';
import { acquire, lost } from './leases.ts';
import { openTransaction } from './transaction.ts';

const found = await findPostgres();
const foundPgbouncer = found && (await findPgbouncer());
const TTL_SECONDS = 0.3;
const conflict = expect.objectContaining({ code: 'CONFLICT', retryable: true });
const unavailable = (message: string): unknown =>
  expect.objectContaining({ code: 'STORE_UNAVAILABLE', message: expect.stringContaining(message) as string });

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.skipIf(found === null)('store.transaction on PostgreSQL', () => {
  let server: Postgres;
  let pool: pg.Pool;
  let store: PostgresStore;
  /** One connection at a time, so that what a transaction leaves behind is met by the next one. */
  let single: pg.Pool;
  const texts: string[] = [];

  beforeAll(async () => {
    server = await startPostgres({ deadlock_timeout: '100ms' });
    pool = openPool(server.url);
    await migratePostgres({ pool });
    await pool.query('CREATE TABLE job (id text PRIMARY KEY, status text)');
    await pool.query('CREATE TABLE fenced (id text PRIMARY KEY, token bigint)');
    store = await PostgresStore.open({ pool });
    await store.fenceTable('fenced', { run: 'id', token: 'token' });
    single = new pg.Pool({ connectionString: server.url, max: 1 });
    single.on('error', () => {});
    single.on('connect', (client) => {
      const { query } = client;
      client.query = ((statement: { text?: string } | string, ...rest: unknown[]) => {
        texts.push(typeof statement === 'string' ? statement : String(statement.text));
        return (query as (...args: unknown[]) => unknown).call(client, statement, ...rest);
      }) as typeof query;
    });
  });

  beforeEach(() => {
    texts.length = 0;
  });

  // Nothing that a test did is left behind on the connection.
  const expectClean = async (): Promise<void> => {
    expect(single.idleCount).toBe(1);
    const client = await single.connect();
    expect((client as unknown as { getTransactionStatus(): string }).getTransactionStatus()).toBe('I');
    client.release();
  };

  afterAll(async () => {
    await single.end();
    await store.close();
    await pool.end();
    await server.close();
  });

  const insert =
    ({ runId }: StoredLease, status = 'done') =>
    (client: pg.PoolClient): Promise<unknown> =>
      client.query('INSERT INTO job VALUES ($1, $2)', [runId, status]);

  const statusOf = async (runId: string): Promise<unknown> =>
    (await pool.query('SELECT status FROM job WHERE id = $1', [runId])).rows[0]?.status;

  it('B17 commits what the work did and returns what it gave, in no more round trips than without a lease', async () => {
    const lease = await acquire(store, freshRun(), 'worker-a');
    const given = await store.transaction(single, lease, async (client) => {
      await insert(lease)(client);
      return 'given';
    });
    expect(given).toBe('given');
    expect(await statusOf(lease.runId)).toBe('done');
    expect(await store.currentFence(lease.runId)).toBe(lease.fencingToken);
    expect(texts).toEqual([expect.stringMatching(/^BEGIN; SELECT/), expect.stringContaining('INSERT'), 'COMMIT']);
    await expectClean();
  });

  it('B17 is prepared once for a connection', async () => {
    for (let index = 0; index < 4; index += 1) {
      const lease = await acquire(store, freshRun(), 'worker-a');
      await store.transaction(single, lease, insert(lease));
    }
    const fences = texts.filter((text) => text.startsWith('BEGIN'));
    expect(fences.filter((text) => text.includes('PREPARE')).length).toBeLessThanOrEqual(1);
    expect(fences.filter((text) => text.startsWith('BEGIN; EXECUTE')).length).toBeGreaterThanOrEqual(2);
  });

  it('B18 TK2 TK3 a late worker’s work is not begun, and a newer one’s waits for the transaction in flight and sees its data', async () => {
    const late = await acquire(store, freshRun(), 'worker-a', TTL_SECONDS);
    let end = (): void => {};
    const open = new Promise<void>((resolve) => (end = resolve));
    const flight = store.transaction(pool, late, async (client) => {
      await insert(late, 'in flight')(client);
      await open;
    });
    await untilPassed(pool, TTL_SECONDS);
    const next = await acquire(store, late.runId, 'worker-b');
    const seen = store.transaction(pool, next, async (client) => {
      const { rows } = await client.query('SELECT status FROM job WHERE id = $1', [late.runId]);
      return rows as unknown[];
    });
    await untilWaiting(pool, 1);
    end();
    await flight;
    expect(await seen).toEqual([{ status: 'in flight' }]);
    const work = vi.fn<() => void>();
    await expect(store.transaction(single, late, work)).rejects.toEqual(lost('superseded'));
    expect(work).not.toHaveBeenCalled();
    await expectClean();
  });

  it('B19 expiry alone refuses nothing; a released lease and a foreign or future token do', async () => {
    const lease = await acquire(store, freshRun(), 'worker-a', TTL_SECONDS);
    await untilPassed(pool, TTL_SECONDS);
    await store.transaction(single, lease, insert(lease));
    const nothing = (): void => {};
    await expect(store.transaction(single, { ...lease, fencingToken: 9 }, nothing)).rejects.toEqual(lost('unknown'));
    await expect(store.transaction(single, { ...lease, workerId: 'b' }, nothing)).rejects.toEqual(lost('unknown'));
    await store.release(lease);
    await expect(store.transaction(single, lease, nothing)).rejects.toEqual(lost('released'));
    await expectClean();
  });

  it('an error of the work comes as it is, with nothing written', async () => {
    const lease = await acquire(store, freshRun(), 'worker-a');
    const own = new Error('mine', { cause: Object.assign(new Error('theirs'), { code: '40001' }) });
    const failing = async (client: pg.PoolClient): Promise<void> => {
      await insert(lease)(client);
      throw own;
    };
    await expect(store.transaction(single, lease, failing)).rejects.toBe(own);
    const thrown: unknown = await store
      .transaction(single, lease, (client) => client.query('SELECT 1/0'))
      .catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(pg.DatabaseError);
    expect(await statusOf(lease.runId)).toBeUndefined();
    await expectClean();
  });

  it('a failed statement of which the work says nothing is an error, not a commit of nothing', async () => {
    const lease = await acquire(store, freshRun(), 'worker-a');
    const silent = async (client: pg.PoolClient): Promise<void> => {
      await insert(lease)(client);
      await client.query('SELECT 1/0').catch(() => {});
    };
    await expect(store.transaction(single, lease, silent)).rejects.toEqual(unavailable('had failed'));
    expect(await statusOf(lease.runId)).toBeUndefined();
    await expectClean();
  });

  it('a work that gives its client back is told so, before anybody else can have it', async () => {
    const lease = await acquire(store, freshRun(), 'worker-a');
    const releasing = async (client: pg.PoolClient): Promise<void> => {
      await insert(lease)(client);
      client.release();
    };
    await expect(store.transaction(single, lease, releasing)).rejects.toThrow('not to release');
    expect(await statusOf(lease.runId)).toBeUndefined();
    await expectClean();
  });

  it('B14 a connection that the server ended during the work has committed nothing, and that is known', async () => {
    const lease = await acquire(store, freshRun(), 'worker-a');
    const ended = async (client: pg.PoolClient): Promise<void> => {
      await insert(lease)(client);
      const broken = new Promise((resolve) => client.once('error', resolve));
      await pool.query('SELECT pg_terminate_backend($1)', [(client as unknown as { processID: number }).processID]);
      await broken;
    };
    await expect(store.transaction(single, lease, ended)).rejects.toEqual(unavailable('Nothing was committed'));
    expect(await statusOf(lease.runId)).toBeUndefined();
    await store.transaction(single, lease, insert(lease));
  });

  it('B15 a store that was closed begins no transaction', async () => {
    const own = await PostgresStore.open({ pool });
    const lease = await acquire(own, freshRun(), 'worker-a');
    await own.close();
    const closed = unavailable('closed');
    await expect(own.transaction(single, lease, () => {})).rejects.toEqual(closed);
    const open = await openTransaction(pool, 'READ COMMITTED');
    await expect(own.fence(open.client, lease)).rejects.toEqual(closed);
    await open.end('ROLLBACK');
    expect(() => own.changes([lease.runId], { signal: new AbortController().signal })).toThrow('closed');
    expect(texts).toEqual([]);
  });

  it('a work that ends the transaction itself is told so', async () => {
    const lease = await acquire(store, freshRun(), 'worker-a');
    const ending = (client: pg.PoolClient): Promise<unknown> => client.query('COMMIT');
    await expect(store.transaction(single, lease, ending)).rejects.toThrow(TypeError);
    await expectClean();
  });

  it.each(['read committed', 'repeatable read', 'serializable'] as const)(
    'runs in %s when told to',
    async (isolation) => {
      const lease = await acquire(store, freshRun(), 'worker-a');
      for (let index = 0; index < 3; index += 1) {
        const shown = await store.transaction(
          single,
          lease,
          async (client) => (await client.query('SHOW transaction_isolation')).rows as unknown[],
          { isolation },
        );
        expect(shown).toEqual([{ transaction_isolation: isolation }]);
      }
    },
  );

  it('what other transactions did, and a fenced table’s refusal of this lease, are the errors of the library', async () => {
    const lease = await acquire(store, freshRun(), 'worker-a');
    await store.transaction(single, lease, insert(lease));
    const outrun = async (client: pg.PoolClient): Promise<void> => {
      await client.query('SELECT FROM job');
      await pool.query(`UPDATE job SET status = 'theirs' WHERE id = $1`, [lease.runId]);
      await client.query(`UPDATE job SET status = 'mine' WHERE id = $1`, [lease.runId]);
    };
    const serializable = { isolation: 'serializable' } as const;
    await expect(store.transaction(single, lease, outrun, serializable)).rejects.toEqual(conflict);
    const other = await acquire(store, freshRun(), 'worker-a');
    const row =
      ({ runId }: StoredLease, token: number) =>
      (client: pg.PoolClient): Promise<unknown> =>
        client.query('INSERT INTO fenced VALUES ($1, $2)', [runId, token]);
    const released = async (client: pg.PoolClient): Promise<void> => {
      await store.release(lease);
      await row(lease, lease.fencingToken)(client);
    };
    await expect(store.transaction(single, lease, released)).rejects.toEqual(lost('released'));
    // A row with another token, or of another run, says nothing of the lease of this transaction.
    await expect(store.transaction(single, other, row(other, 9))).rejects.toMatchObject({ code: 'LS010' });
    await expect(store.transaction(single, other, row(lease, 9))).rejects.toMatchObject({ code: 'LS010' });
    const older = await acquire(store, freshRun(), 'worker-a');
    await store.release(older);
    const newer = await acquire(store, older.runId, 'worker-b');
    await expect(store.transaction(single, newer, row(newer, 1))).rejects.toMatchObject({ code: 'LS010' });
    const bare = (client: pg.PoolClient): Promise<unknown> =>
      client.query('INSERT INTO fenced (id) VALUES ($1)', [newer.runId]);
    await expect(store.transaction(single, newer, bare)).rejects.toMatchObject({ code: 'UNFENCED_RUN' });
    await store.transaction(single, newer, row(newer, 2));
    await store.transaction(single, other, row(other, other.fencingToken));
    await expectClean();
  });

  it('any name is taken, whatever the server makes of backslashes', async () => {
    await pool.query('ALTER ROLE postgres SET standard_conforming_strings = off');
    onTestFinished(() => void pool.query('ALTER ROLE postgres RESET standard_conforming_strings'));
    const odd = new pg.Pool({ connectionString: server.url, max: 1 });
    for (const name of [`it's`, `back\\slash`, `\\'; DROP TABLE job; --`, `$1 $2`, `a "quote" \n line`, '€ 😀']) {
      const lease = await acquire(store, `${name} ${randomUUID()}`, name);
      for (const client of [odd, single]) await store.transaction(client, lease, () => {});
      expect(await store.currentFence(lease.runId)).toBe(lease.fencingToken);
    }
    await odd.end();
  });

  it('B26 a connection whose statements were thrown away is noticed, and the work done all the same', async () => {
    const lease = await acquire(store, freshRun(), 'worker-a');
    for (let index = 0; index < 2; index += 1) await store.transaction(single, lease, () => {});
    await single.query('DISCARD ALL');
    const work = vi.fn<(client: pg.PoolClient) => Promise<unknown>>(insert(lease));
    await store.transaction(single, lease, work);
    expect(work).toHaveBeenCalledTimes(1);
    expect(await statusOf(lease.runId)).toBe('done');
    await expectClean();
  });

  // Where it cannot be had: a line says so on a laptop, and CI fails.
  it.skipIf(foundPgbouncer === null)('B17 holds through a pooler in transaction mode, unprepared', async () => {
    const pooler = await startPgbouncer(server, 'postgres', { connections: 3 });
    const pooled = openPool(pooler.url);
    await Promise.all(
      Array.from({ length: 40 }, async () => {
        const lease = await acquire(store, freshRun(), 'worker-a');
        await store.transaction(pooled, lease, insert(lease));
        expect(await statusOf(lease.runId)).toBe('done');
      }),
    );
    await pooled.end();
    await pooler.close();
  });

  it('`prepare: false` prepares nothing', async () => {
    await using plain = await PostgresStore.open({ pool, prepare: false });
    const lease = await acquire(store, freshRun(), 'worker-a');
    for (let index = 0; index < 3; index += 1) await plain.transaction(single, lease, () => {});
    expect(texts.filter((text) => /PREPARE|EXECUTE/.test(text))).toEqual([]);
  });

  it('a connection that ends in the work, or before it, writes nothing; one that ends in COMMIT leaves the outcome unknown', async () => {
    const proxy = await startProxy(server.port);
    const proxied = new pg.Pool({ connectionString: `postgres://postgres@127.0.0.1:${proxy.port}/postgres`, max: 1 });
    proxied.on('error', () => {});
    const lease = await acquire(store, freshRun(), 'worker-a');
    const cutIn = async (client: pg.PoolClient): Promise<void> => {
      await insert(lease)(client);
      proxy.set('cutOnReply');
      await client.query('SELECT 1');
    };
    await expect(store.transaction(proxied, lease, cutIn)).rejects.toThrow('Connection terminated');
    await expect(store.transaction(proxied, lease, () => {})).rejects.toEqual(unavailable(''));
    proxy.set('pass');
    const cutAtCommit = async (client: pg.PoolClient): Promise<void> => {
      await insert(lease)(client);
      proxy.set('cutOnReply');
    };
    await expect(store.transaction(proxied, lease, cutAtCommit)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    proxy.set('pass');
    // It had been done. The next transaction has a connection of its own.
    expect(await store.transaction(proxied, lease, () => statusOf(lease.runId))).toBe('done');
    await proxied.end();
    await proxy.close();
  });

  it('I a client, a pool that was ended, another database, and other mistakes are refused before anything is sent', async () => {
    const lease = await acquire(store, freshRun(), 'worker-a');
    const nothing = (): void => {};
    const client = await pool.connect();
    for (const wrong of [client, undefined, {}, 7]) {
      await expect(store.transaction(wrong as never, lease, nothing)).rejects.toThrow(TypeError);
    }
    client.release();
    await expect(store.transaction(single, {} as never, nothing)).rejects.toThrow(TypeError);
    await expect(store.transaction(single, lease, 'work' as never)).rejects.toThrow('work');
    const isolation = 'serializable; DROP TABLE job' as NonNullable<TransactionOptions['isolation']>;
    await expect(store.transaction(single, lease, nothing, { isolation })).rejects.toThrow('isolation');
    expect(texts).toEqual([]);
    const elsewhere = openPool(await server.createDatabase(randomUUID()));
    const another = expect.objectContaining({
      name: 'TypeError',
      message: expect.stringContaining('another one') as string,
    });
    await expect(store.transaction(elsewhere, lease, nothing)).rejects.toEqual(another);
    await migratePostgres({ pool: elsewhere });
    await expect(store.transaction(elsewhere, lease, nothing)).rejects.toEqual(another);
    await elsewhere.end();
    await expect(store.transaction(elsewhere, lease, nothing)).rejects.toThrow('ended');
    const unreachable = new pg.Pool({ connectionString: 'postgres://postgres@127.0.0.1:1/postgres' });
    await expect(store.transaction(unreachable, lease, nothing)).rejects.toEqual(unavailable('No connection'));
  });

  it('I leases that were replaced since the store was opened are told as lost state', async () => {
    const url = await server.createDatabase(randomUUID());
    const own = openPool(url);
    await migratePostgres({ pool: own });
    await using opened = await PostgresStore.open({ pool: own, failover: 'refuse' });
    const lease = await acquire(opened, freshRun(), 'worker-a');
    const home = await own.query('SELECT marker FROM lessor.meta');
    await own.query('DROP SCHEMA lessor CASCADE');
    await migratePostgres({ pool: own });
    await own.query('ALTER TABLE lessor.meta DISABLE TRIGGER ALL');
    await own.query('UPDATE lessor.meta SET marker = $1', [home.rows[0].marker]);
    await expect(opened.transaction(own, lease, () => {})).rejects.toBeInstanceOf(StateLostError);
    await opened.close();
    await own.end();
  });

  it('a connection that somebody gave back inside a transaction is not used, and ended', async () => {
    const lease = await acquire(store, freshRun(), 'worker-a');
    const sloppy = await single.connect();
    await sloppy.query('BEGIN');
    sloppy.release();
    await expect(store.transaction(single, lease, insert(lease))).rejects.toEqual(unavailable('inside a transaction'));
    await store.transaction(single, lease, insert(lease));
    expect(await statusOf(lease.runId)).toBe('done');
  });
});
