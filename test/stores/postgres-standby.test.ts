/** Standbys, and a failover to one. */
import type pg from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { StateLostError } from '../../src/errors.ts';
import type { StoredLease } from '../../src/lease.ts';
import { migratePostgres, PostgresStore } from '../../src/stores/postgres.ts';
import { findPostgres, openPool, startPostgres, startStandby, type Postgres } from '../services/postgres.ts';
import { startProxy } from '../services/proxy.ts';
import { ask, freshRun, granted, until } from './postgres-fixtures.ts';

const found = await findPostgres();

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.skipIf(found === null)('PostgreSQL with a standby', { timeout: 60_000 }, () => {
  const opened: { close(): Promise<void> }[] = [];

  afterEach(async () => {
    for (const each of opened.splice(0).toReversed()) await each.close();
  });

  function keep<Opened extends { close(): Promise<void> }>(each: Opened): Opened {
    opened.push(each);
    return each;
  }

  async function startPair(): Promise<{ primary: Postgres; standby: Postgres }> {
    const primary = keep(await startPostgres());
    await migratePostgres({ url: primary.url });
    return { primary, standby: keep(await startStandby(primary, 'second')) };
  }

  /** A pool that reaches whichever server it was last moved to, as behind a name that a failover points elsewhere. */
  async function openMovable(primary: Postgres): Promise<{ pool: pg.Pool; moveTo(server: Postgres): void }> {
    const proxy = keep(await startProxy(primary.port));
    const pool = openPool(`postgres://postgres@127.0.0.1:${proxy.port}/postgres`);
    keep({ close: () => pool.end() });
    return { pool, moveTo: (server) => proxy.moveTo(server.port) };
  }

  it('PG3. No decision is taken on a standby: it is refused at opening, and no call of an open store is answered by one', async () => {
    const { primary, standby } = await startPair();
    await expect(PostgresStore.open({ url: standby.url })).rejects.toThrow(/standby/);
    await expect(PostgresStore.open({ url: standby.url })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });

    const { pool, moveTo } = await openMovable(primary);
    const store = keep(await PostgresStore.open({ pool }));
    const lease = await granted(store, ask(freshRun()));
    await until(
      async () => (await standby.psql(`SELECT FROM lessor.lease WHERE run_id = '${lease.runId}'`)).length === 1,
    );
    moveTo(standby);
    const calls: Record<string, () => Promise<unknown>> = {
      acquire: () => store.acquire(ask(freshRun())),
      renew: () => store.renew([lease], 30),
      release: () => store.release(lease),
      read: () => store.read(lease.runId),
      list: () => store.list()[Symbol.asyncIterator]().next(),
      currentFence: () => store.currentFence(lease.runId),
    };
    await until(async () =>
      store.read(lease.runId).then(
        () => false,
        () => true,
      ),
    );
    for (const [name, call] of Object.entries(calls)) {
      await expect(call(), name).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    }
    moveTo(primary);
    await until(async () =>
      store.renew([lease], 30).then(
        () => true,
        () => false,
      ),
    );
  });

  it('PG2. A promoted PostgreSQL standby that missed grants is noticed', async () => {
    const { primary, standby } = await startPair();
    const { pool, moveTo } = await openMovable(primary);
    const store = keep(await PostgresStore.open({ pool }));
    expect(store.durability.warnings.join()).toMatch(/a standby that is promoted may have missed the last grants/);
    const runId = freshRun();
    await store.release(await granted(store, ask(runId)));
    await until(
      async () => (await standby.psql(`SELECT FROM lessor.lease WHERE released_at IS NOT NULL`)).length === 1,
    );

    await standby.stop();
    const missed: StoredLease = await granted(store, ask(runId));
    expect(missed.fencingToken).toBe(2);
    await primary.kill9();
    await standby.start();
    await standby.psql('SELECT pg_promote()');
    moveTo(standby);
    await expect(store.renew([missed], 30)).rejects.toThrow(StateLostError);
    await expect(store.read(runId)).rejects.toThrow(/raise_fences\(1000000\).*open the store anew/);

    const anew = keep(await PostgresStore.open({ pool }));
    expect(anew.durability.warnings.join()).toMatch(/raise_fences/);
    const repeated = await granted(anew, ask(runId));
    expect(repeated.fencingToken).toBe(missed.fencingToken);
    expect(await anew.renew([missed], 30)).toEqual([{ status: 'lost', reason: 'superseded' }]);
    expect(await anew.release(missed)).toBe(false);
    await anew.release(repeated);

    await standby.psql('SELECT lessor.raise_fences(1000000)');
    const settled = keep(await PostgresStore.open({ pool }));
    expect(settled.durability.warnings.join()).not.toMatch(/raise_fences/);
    expect((await granted(settled, ask(runId))).fencingToken).toBeGreaterThan(1_000_000);
  });

  it('PG2. With synchronous replication a failover loses no grant, and the store works on', async () => {
    const { primary, standby } = await startPair();
    await primary.psql(`ALTER SYSTEM SET synchronous_standby_names = 'second'`);
    await primary.psql('ALTER ROLE postgres SET synchronous_commit = local');
    await primary.psql('SELECT pg_reload_conf()');
    const { pool, moveTo } = await openMovable(primary);
    const isSynchronous = `SELECT FROM pg_stat_replication WHERE sync_state = 'sync'`;
    await until(async () => (await primary.psql(isSynchronous)).length === 1);
    const store: PostgresStore = keep(await PostgresStore.open({ pool }));
    const leases: StoredLease[] = [];
    for (let grant = 0; grant < 30; grant += 1) leases.push(await granted(store, ask(freshRun(), { ttlSeconds: 300 })));

    await standby.stop();
    const unreplicated = store.acquire(ask(freshRun()), { signal: AbortSignal.timeout(300) });
    await expect(unreplicated).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await primary.kill9();
    await standby.start();
    await standby.psql('SELECT pg_promote()');
    await standby.psql('ALTER SYSTEM RESET synchronous_standby_names');
    await standby.psql('SELECT pg_reload_conf()');
    moveTo(standby);
    await until(async () =>
      store.read(leases[0]!.runId).then(
        () => true,
        () => false,
      ),
    );
    const results = await store.renew(leases, 300);
    expect(results.filter(({ status }) => status === 'renewed')).toHaveLength(30);
  });
});
