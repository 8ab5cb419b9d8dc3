/** A Redis that forgot, was replaced or has another time: no token repeats or goes back, and lost state is told. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StoredLease } from '../../src/lease.ts';
import { LeaseManager } from '../../src/manager/lease-manager.ts';
import type { LeaseStore } from '../../src/stores/store.ts';
import { findLibfaketime } from '../services/faketime.ts';
import { startProxy } from '../services/proxy.ts';
import { findRedis, startRedis, type Redis } from '../services/redis.ts';
import { openAt } from './redis-clients.ts';

const isPresent = (await findRedis()) !== null;
const canStep = isPresent && (await findLibfaketime()) !== null;
const LOST = { code: 'STATE_LOST', retryable: false };

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.runIf(isPresent)('RD3. A Redis that forgot does not count from 1 again', () => {
  let server: Redis;
  let store: LeaseStore;
  beforeEach(async () => {
    server = await startRedis({ config: { maxmemory: '0' } });
    store = await openAt(server);
  });
  afterEach(async () => {
    await store.close();
    await server.close();
  });

  const losses: Record<string, () => Promise<unknown>> = {
    'after FLUSHALL': () => server.command('FLUSHALL'),
    'after a restart without the append-only file': () => server.restart(),
    'after a kill without the append-only file': async () => {
      await server.kill9();
      await server.start();
    },
  };
  for (const [when, lose] of Object.entries(losses)) {
    it(`${when} the open store says so in every call, and one opened anew goes on above`, async () => {
      const lease = await acquire(store, 'run', 'worker-a');
      await lose();
      // Another run's call notices as well: the server has forgotten, not only this run.
      await expect(eventually(() => store.read('another'))).rejects.toMatchObject(LOST);
      const calls = [
        () => acquire(store, 'run', 'worker-b'),
        () => store.renew([lease], 30),
        () => store.release(lease),
        () => store.revoke('run', { by: 'op', reason: 'test' }),
        () => store.read('run'),
        () => store.currentFence('run'),
        () => store.list()[Symbol.asyncIterator]().next(),
      ];
      for (const call of calls) await expect(call()).rejects.toMatchObject(LOST);
      await expect(store.read('run')).rejects.toThrow('open the store anew');

      const anew = await openAt(server);
      const next = await acquire(anew, 'run', 'worker-b');
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
      expect(await anew.renew([lease], 30)).toEqual([{ status: 'lost', reason: 'superseded' }]);
      expect(await anew.release(lease)).toBe(false);
      await anew.close();
    });
  }

  it('a store that another has opened anew in the meantime is told as well', async () => {
    const lease = await acquire(store, 'run', 'worker-a');
    await server.command('FLUSHALL');
    const anew = await openAt(server);
    const next = await acquire(anew, 'run', 'worker-b');
    await expect(store.renew([lease], 30)).rejects.toMatchObject(LOST);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await anew.close();
  });

  it('after eviction by `allkeys-lru` tokens rise', async () => {
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru', 'maxmemory-samples', '10');
    const first = await acquire(store, 'evicted', 'worker-a');
    await store.release(first);
    const record = (await server.command('KEYS', '*:lease:evicted')) as string[];
    await server.command('CONFIG', 'SET', 'maxmemory', '4mb');
    const filling = 'x'.repeat(20_000);
    for (let index = 0; (await server.command('EXISTS', record[0]!)) === 1; index += 1) {
      expect(index, 'keys written without evicting the record').toBeLessThan(5_000);
      await server.command('SET', `filling-${index}`, filling);
    }
    const anew = await openAt(server, { allowEviction: true });
    expect((await acquire(anew, 'evicted', 'worker-b')).fencingToken).toBeGreaterThan(first.fencingToken);
    await anew.close();
  });

  it('after SCRIPT FLUSH nothing is lost', async () => {
    const lease = await acquire(store, 'run', 'worker-a');
    await server.command('SCRIPT', 'FLUSH');
    expect(await store.renew([lease], 30)).toMatchObject([{ status: 'renewed' }]);
    await server.command('SCRIPT', 'FLUSH');
    expect(await acquire(store, 'run', 'worker-a')).toMatchObject({ fencingToken: lease.fencingToken });
  });

  it('B2 many grants within a millisecond get a token each', async () => {
    const tokens: number[] = [];
    for (let round = 0; round < 500; round += 1) {
      const lease = await acquire(store, 'busy', 'worker-a');
      tokens.push(lease.fencingToken);
      await store.release(lease);
    }
    expect(tokens).toEqual([...new Set(tokens)].toSorted((one, other) => one - other));
  });
});

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.runIf(isPresent)('RD2. A Redis failover that lost the lease repeats no token', () => {
  it('a promoted replica that missed the grant gives a higher token, and refuses the older lease from then on', async () => {
    const primary = await startRedis();
    const way = await startProxy(primary.port);
    const replica = await startRedis({ replicaOf: way });
    const before = await openAt(primary);
    await acquire(before, 'other', 'worker-a');
    await eventuallyTrue(async () => ((await replica.command('KEYS', '*:lease:other')) as string[]).length === 1);
    // Cut off, it misses what is granted from here on.
    way.set('refuse');
    const lease = await acquire(before, 'run', 'worker-a');
    await primary.kill9();
    await replica.command('REPLICAOF', 'NO', 'ONE');
    expect(await replica.command('KEYS', '*:lease:run')).toEqual([]);

    const after = await openAt(replica);
    expect(await after.renew([lease], 30)).toEqual([{ status: 'lost', reason: 'unknown' }]);
    const next = await acquire(after, 'run', 'worker-b');
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await after.renew([lease], 30)).toEqual([{ status: 'lost', reason: 'superseded' }]);
    expect(await after.release(lease)).toBe(false);
    await Promise.all([before.close(), after.close()]);
    await Promise.all([primary.close(), replica.close(), way.close()]);
  });
});

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.runIf(canStep)("RD4. A step of the server's clock costs exclusiveness of belief at most", () => {
  let server: Redis;
  let store: LeaseStore;
  beforeEach(async () => {
    server = await startRedis({ steppableClock: true });
    store = await openAt(server);
  });
  afterEach(async () => {
    await store.close();
    await server.close();
  });

  it('forward: the run is free for another worker, with a higher token, and the older lease is refused', async () => {
    const lease = await acquire(store, 'run', 'worker-a');
    server.setClock(60);
    const next = await acquire(store, 'run', 'worker-b');
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await store.renew([lease], 30)).toEqual([{ status: 'lost', reason: 'superseded' }]);
    expect(await store.release(lease)).toBe(false);
  });

  it('back: the lease lives on, what remains shows the step, and no expiry is taken back', async () => {
    const lease = await acquire(store, 'run', 'worker-a');
    server.setClock(-120);
    expect(await store.acquire(requestOf('run', 'worker-b'))).toMatchObject({ status: 'held' });
    const record = await store.read('run');
    expect(record!.remainingSeconds).toBeGreaterThan(record!.ttlSeconds + 100);
    expect(await store.renew([lease], 30)).toEqual([{ status: 'renewed', expiresAt: lease.expiresAt }]);
  });

  it('RD3. back by an hour, data kept: tokens rise', async () => {
    const lease = await acquire(store, 'run', 'worker-a');
    await store.release(lease);
    server.setClock(-3600);
    const next = await acquire(store, 'run', 'worker-b');
    expect(next.fencingToken).toBe(lease.fencingToken + 1);
  });
});

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.runIf(canStep)("AQ3. A worker's wrong clock changes nothing", () => {
  it('no time of the client reaches the server: expiry is the now of the server and the ttl, whatever the worker thinks', async () => {
    const server = await startRedis({ steppableClock: true });
    // To a server an hour ahead every worker's clock is an hour late.
    server.setClock(3600);
    const store = await openAt(server);
    const lease = await acquire(store, 'run', 'worker-a');
    const [seconds] = (await server.command('TIME')) as [string, string];
    expect(Math.abs(lease.expiresAt - 30 - Number(seconds))).toBeLessThan(10);
    expect(lease.expiresAt - Date.now() / 1000).toBeGreaterThan(3000);
    const held = await store.acquire(requestOf('run', 'worker-b'));
    expect(held).toMatchObject({ status: 'held' });
    expect((held as { retryAfterSeconds: number }).retryAfterSeconds).toBeGreaterThan(0);
    expect((held as { retryAfterSeconds: number }).retryAfterSeconds).toBeLessThanOrEqual(30);
    await store.close();
    await server.close();
  });
});

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.runIf(isPresent)('TK12. Restarting the store gives no run to two workers', () => {
  it('over ten kills intervals of belief never overlap, and tokens rise throughout', { timeout: 120_000 }, async () => {
    const server = await startRedis({ appendonly: true });
    const ended = new AbortController();
    const beliefs: { from: number; to: number; token: number; workerId: string }[] = [];
    const workers = Array.from({ length: 4 }, async () => {
      const store = await openAt(server);
      const leases = new LeaseManager(store, { ttlSeconds: 1, pollSeconds: 0.1 });
      while (!ended.signal.aborted) {
        const hold = leases.hold('run', { waitSeconds: 2, signal: ended.signal }, async (lease) => {
          const { fencingToken: token, workerId } = lease;
          const belief = { from: performance.now(), to: Infinity, token, workerId };
          beliefs.push(belief);
          const lost = once(lease.signal, 'abort');
          await Promise.race([lost, new Promise((resolve) => setTimeout(resolve, 30))]);
          belief.to = performance.now();
        });
        await hold.catch(() => undefined);
      }
      await leases.close();
      await store.close();
    });
    for (let kill = 0; kill < 10; kill += 1) {
      const seen = beliefs.length;
      await eventuallyTrue(async () => beliefs.length > seen);
      await server.kill9();
      await server.start();
    }
    const seen = beliefs.length;
    await eventuallyTrue(async () => beliefs.length > seen);
    ended.abort();
    await Promise.all(workers);
    await server.close();

    const inOrder = beliefs.toSorted((one, other) => one.from - other.from);
    for (const [index, belief] of inOrder.entries()) {
      const next = inOrder[index + 1];
      if (next === undefined) continue;
      expect(next.from, `token ${next.token} after ${belief.token}`).toBeGreaterThanOrEqual(belief.to);
      // A worker whose release got no answer acquires its own live lease again, with the token that it has.
      if (next.workerId === belief.workerId) expect(next.token).toBeGreaterThanOrEqual(belief.token);
      else expect(next.token).toBeGreaterThan(belief.token);
    }
  });
});

function requestOf(runId: string, workerId: string) {
  return { runId, workerId, acquisitionId: randomUUID(), ttlSeconds: 30 };
}

async function acquire(store: LeaseStore, runId: string, workerId: string): Promise<StoredLease> {
  const result = await store.acquire(requestOf(runId, workerId));
  if (result.status !== 'granted') throw new Error(`Expected a grant, got ${JSON.stringify(result)}`);
  return result.lease;
}

/** The answer, or the error that is not about the connection. */
async function eventually<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const { code } = error as { code?: string };
      const isDown = code === 'STORE_UNAVAILABLE' || code === 'OUTCOME_UNKNOWN';
      if (!isDown || performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

async function eventuallyTrue(ask: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!(await ask())) {
    if (performance.now() > deadline) throw new Error('It did not come about in 20 s');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
