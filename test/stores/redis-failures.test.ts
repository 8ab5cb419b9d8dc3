/** What a call says when the server, or the way to it, fails: told apart, nothing half-done, and working again after it. */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { LeaseManager } from '../../src/manager/lease-manager.ts';
import { RedisKeys } from '../../src/stores/redis/keys.ts';
import { RedisStore } from '../../src/stores/redis.ts';
import type { AcquireRequest, LeaseStore } from '../../src/stores/store.ts';
import { startProxy, type Proxy } from '../services/proxy.ts';
import { findRedis, startRedis, type Redis } from '../services/redis.ts';
import { CLIENTS, freshPrefix, openAt, type OpenClient } from './redis-clients.ts';

const isPresent = (await findRedis()) !== null;
const UNAVAILABLE = { code: 'STORE_UNAVAILABLE' };
const UNKNOWN = { code: 'OUTCOME_UNKNOWN' };

for (const [name, connect] of Object.entries(CLIENTS)) {
  // Where it cannot be had: a line says so on a laptop, and CI fails.
  describe.runIf(isPresent)(`through ${name}, behind a proxy`, () => {
    let server: Redis;
    let proxy: Proxy;
    let open: OpenClient;
    let store: RedisStore;
    beforeAll(async () => void (server = await startRedis()));
    afterAll(() => server.close());
    beforeEach(async () => {
      proxy = await startProxy(server.port);
      open = await connect(proxy.port);
      store = await RedisStore.open({ client: open.client, prefix: freshPrefix(), requestTimeoutSeconds: 1 });
      // The server knows the script from here on: an acquire is one request.
      await store.acquire(requestOf('known'));
    });
    afterEach(async () => {
      await store.close();
      open.end();
      await proxy.close();
    });

    it('AQ1. An acquire whose reply got lost is repeated into the same lease, with a full ttl', async () => {
      const request = requestOf('aq1');
      proxy.set('dropReplies');
      const first = store.acquire(request);
      first.catch(() => {});
      await proxy.untilSwallowed();
      proxy.set('pass');
      proxy.cut();
      await expect(first).rejects.toMatchObject(UNKNOWN);
      const token = await eventually(() => store.currentFence('aq1'));
      const again = await store.acquire(request);
      expect(again).toMatchObject({ status: 'granted', lease: { fencingToken: token } });
      const record = await store.read('aq1');
      expect(record!.remainingSeconds).toBeGreaterThan(25);
      expect(await store.release({ runId: 'aq1', workerId: 'w', acquisitionId: request.acquisitionId })).toBe(true);
      expect(await store.read('aq1')).toMatchObject({ state: 'free' });
    });

    it('AQ1. Giving up an acquire whose reply got lost frees the run at once', async () => {
      const request = requestOf('aq1-given-up');
      const given = new AbortController();
      proxy.set('dropReplies');
      const first = store.acquire(request, { signal: given.signal });
      await Promise.all([
        expect(first).rejects.toMatchObject({ ...UNKNOWN, cause: 'enough' }),
        proxy.untilSwallowed().then(() => given.abort('enough')),
      ]);
      proxy.set('pass');
      proxy.cut();
      const { runId, workerId, acquisitionId } = request;
      expect(await eventually(() => store.release({ runId, workerId, acquisitionId }))).toBe(true);
      expect(await store.acquire(requestOf(runId, 'other'))).toMatchObject({ status: 'granted' });
    });

    it('a reply that breaks the connection leaves the outcome unknown, and the next call works', async () => {
      proxy.set('cutOnReply');
      await expect(store.acquire(requestOf('cut'))).rejects.toMatchObject(UNKNOWN);
      proxy.set('pass');
      expect(await eventually(() => store.acquire(requestOf('cut', 'other')))).toMatchObject({ status: 'held' });
    });

    it('a command that was on its way when the connection broke is not sent again when it is back', async () => {
      proxy.set('dropRequests');
      const lost = store.acquire(requestOf('once'));
      lost.catch(() => {});
      await new Promise((resolve) => setImmediate(resolve));
      proxy.set('pass');
      proxy.cut();
      await expect(lost).rejects.toMatchObject(UNKNOWN);
      expect(await eventually(() => store.read('once'))).toBeNull();
      // Whatever the client may still send comes before this.
      expect(await store.currentFence('once')).toBe(0);
    });

    it('a server that does not answer ends each call after `requestTimeoutSeconds`', async () => {
      proxy.set('dropRequests');
      const startedAt = performance.now();
      const lease = { ...refOf('slow'), fencingToken: 1 };
      await Promise.all([
        expect(store.acquire(requestOf('slow'))).rejects.toMatchObject(UNKNOWN),
        expect(store.renew([lease], 30)).rejects.toMatchObject(UNKNOWN),
        expect(store.release(lease)).rejects.toMatchObject(UNKNOWN),
        expect(store.revoke('slow', { by: 'op', reason: 'test' })).rejects.toMatchObject(UNKNOWN),
        expect(store.read('slow')).rejects.toMatchObject(UNAVAILABLE),
        expect(store.currentFence('slow')).rejects.toMatchObject(UNAVAILABLE),
        expect(first(store.list())).rejects.toMatchObject(UNAVAILABLE),
      ]);
      expect((performance.now() - startedAt) / 1000).toBeGreaterThanOrEqual(0.999);
    });

    it('B15 a call that waits for the connection, or for its answer, ends when the store is closed', async () => {
      proxy.set('dropRequests');
      const sent = store.acquire(requestOf('sent'));
      sent.catch(() => {});
      await new Promise((resolve) => setImmediate(resolve));
      proxy.set('refuse');
      proxy.cut();
      await expect(sent).rejects.toMatchObject(UNKNOWN);
      const waiting = store.acquire(requestOf('waiting'));
      waiting.catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 50));
      await store.close();
      await expect(waiting).rejects.toMatchObject(UNAVAILABLE);
    });

    it('a signal ends a call at once: unknown when it was sent, its own reason when it was not', async () => {
      await expect(store.acquire(requestOf('s'), { signal: AbortSignal.abort('early') })).rejects.toBe('early');
      expect(await store.read('s')).toBeNull();
      proxy.set('dropRequests');
      const given = new AbortController();
      const call = store.acquire(requestOf('s'), { signal: given.signal });
      // It is sent at the end of this turn.
      await new Promise((resolve) => setImmediate(resolve));
      given.abort('late');
      await expect(call).rejects.toMatchObject({ ...UNKNOWN, cause: 'late' });
      proxy.set('refuse');
      await untilRefused(store);
      const waiting = new AbortController();
      const unsent = store.acquire(requestOf('s'), { signal: waiting.signal });
      waiting.abort('later');
      await expect(unsent).rejects.toSatisfy((error: unknown) => error === 'later' || isUnavailable(error));
    });
  });

  // Where it cannot be had: a line says so on a laptop, and CI fails.
  describe.runIf(isPresent)(`through ${name}, on a server of its own`, () => {
    let server: Redis;
    let open: OpenClient;
    let store: RedisStore;
    let prefix: string;
    beforeEach(async () => {
      server = await startRedis({ appendonly: true });
      open = await connect(server.port);
      prefix = freshPrefix();
      store = await RedisStore.open({ client: open.client, prefix, requestTimeoutSeconds: 2 });
    });
    afterEach(async () => {
      await store.close();
      open.end();
      await server.close();
    });

    it('AQ6. A server that is down is unavailable or unknown to every call, never held, lost or free', async () => {
      const { lease } = granted(await store.acquire(requestOf('aq6')));
      await server.stop();
      const calls: Record<string, () => Promise<unknown>> = {
        acquire: () => store.acquire(requestOf('aq6', 'other')),
        renew: () => store.renew([lease], 30),
        release: () => store.release(lease),
        revoke: () => store.revoke('aq6', { by: 'op', reason: 'test' }),
        read: () => store.read('aq6'),
        currentFence: () => store.currentFence('aq6'),
        list: () => first(store.list()),
      };
      for (const [call, ask] of Object.entries(calls)) {
        const error = await ask().then(
          (answer) => expect.fail(`${call} answered ${JSON.stringify(answer)}`),
          (failure: unknown) => failure,
        );
        expect(error, call).toSatisfy(isUnavailable);
        expect((error as Error).cause, call).toBeDefined();
      }
      await using leases = new LeaseManager(store, { ttlSeconds: 6 });
      await expect(leases.tryAcquire('aq6')).rejects.toSatisfy(isUnavailable);
      await server.start();
      expect(await eventually(() => store.read('aq6'))).toMatchObject({
        state: 'held',
        fencingToken: lease.fencingToken,
      });
      expect(await store.renew([lease], 30)).toMatchObject([{ status: 'renewed' }]);
    });

    it('B26 after a restart, a kill and a script flush calls go on working, and no token goes back', async () => {
      let newest = 0;
      for (const disturb of [server.restart, kill, () => server.command('SCRIPT', 'FLUSH')]) {
        await disturb();
        const { lease } = granted(await eventually(() => store.acquire(requestOf('b26'))));
        expect(lease.fencingToken).toBeGreaterThan(newest);
        newest = lease.fencingToken;
        expect(await store.release(lease)).toBe(true);
      }
      async function kill(): Promise<void> {
        await server.kill9();
        await server.start();
      }
    });

    it('a server that refuses to write is unavailable, its words are the cause, and nothing was applied', async () => {
      const { lease } = granted(await store.acquire(requestOf('kept')));
      const refusals: [string, string, string][] = [
        ['maxmemory', '1', 'OOM'],
        ['min-replicas-to-write', '1', 'NOREPLICAS'],
      ];
      for (const [setting, value, code] of refusals) {
        await server.command('CONFIG', 'SET', setting, value);
        for (const call of [
          () => store.acquire(requestOf('refused')),
          () => store.renew([lease], 60),
          () => store.release(lease),
        ]) {
          await expect(call()).rejects.toMatchObject({ ...UNAVAILABLE, message: expect.stringContaining(code) });
        }
        await server.command('CONFIG', 'SET', setting, '0');
        expect(await store.read('refused')).toBeNull();
        expect(await store.read('kept')).toMatchObject({ state: 'held', expiresAt: lease.expiresAt });
      }
      expect(await store.release(lease)).toBe(true);
    });

    it('AQ5. A key of another type and a record without an expiry are reported, and cost no other run its lease', async () => {
      const keys = new RedisKeys(prefix);
      const { lease } = granted(await store.acquire(requestOf('sound')));
      await server.command('SET', keys.lease('text'), 'no hash');
      await server.command(
        'HSET',
        keys.lease('endless'),
        'worker',
        'w',
        'token',
        '1',
        'acquisition',
        'a',
        'ended',
        'no',
      );
      for (const runId of ['text', 'endless']) {
        const damaged = { ...refOf(runId), fencingToken: 1 };
        await expect(store.acquire(requestOf(runId))).rejects.toMatchObject(UNAVAILABLE);
        await expect(store.read(runId)).rejects.toMatchObject(UNAVAILABLE);
        await expect(store.renew([damaged], 30)).rejects.toMatchObject(UNAVAILABLE);
      }
      await expect(store.read('endless')).rejects.toThrow('run "endless" in Redis is damaged');
      expect(await store.renew([lease], 30)).toMatchObject([{ status: 'renewed' }]);
    });

    it('after `close` every call rejects, and the client that was given goes on', async () => {
      await store.close();
      await expect(store.read('r')).rejects.toMatchObject({
        ...UNAVAILABLE,
        message: expect.stringContaining('closed'),
      });
      await expect(store.acquire(requestOf('r'))).rejects.toMatchObject(UNAVAILABLE);
      const another = await RedisStore.open({ client: open.client, prefix });
      expect(await another.acquire(requestOf('r'))).toMatchObject({ status: 'granted' });
      await another.close();
    });

    it('a close during a call leaves its outcome unknown', async () => {
      const call = store.acquire(requestOf('closing'));
      // It is sent at the end of this turn.
      await new Promise((resolve) => setImmediate(resolve));
      await store.close();
      await call.then(granted, (error: unknown) => expect(error).toMatchObject(UNKNOWN));
    });
  });
}

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.runIf(isPresent)('many references', () => {
  it('B5 a blocked reference changes nothing for the others: one result each, in order', async () => {
    const server = await startRedis();
    const prefix = freshPrefix();
    const store = await openAt(server, { prefix });
    const keys = new RedisKeys(prefix);
    const leases = [];
    for (let index = 0; index < 600; index += 1) {
      leases.push(granted(await store.acquire(requestOf(`run-${index}`))).lease);
    }
    await server.command('SET', keys.lease('run-7'), 'no hash');
    const results = await store.renew([...leases, ...leases.slice(0, 3)], 60);
    expect(results).toHaveLength(603);
    for (const [index, result] of results.entries()) {
      expect(result.status, `reference ${index}`).toBe(index === 7 ? 'lost' : 'renewed');
    }
    await store.close();
    await server.close();
  });
});

function refOf(runId: string, workerId = 'w'): Omit<AcquireRequest, 'ttlSeconds'> {
  return { runId, workerId, acquisitionId: randomUUID() };
}

function requestOf(runId: string, workerId = 'w'): AcquireRequest {
  return { ...refOf(runId, workerId), ttlSeconds: 30 };
}

function granted(result: Awaited<ReturnType<LeaseStore['acquire']>>) {
  if (result.status !== 'granted') throw new Error(`Expected a grant, got ${JSON.stringify(result)}`);
  return result;
}

function isUnavailable(error: unknown): boolean {
  return ['STORE_UNAVAILABLE', 'OUTCOME_UNKNOWN'].includes((error as { code?: string }).code ?? '');
}

/** The answer, once the connection is back. What is thrown for another reason comes out. */
async function eventually<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isUnavailable(error) || performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

async function untilRefused(store: LeaseStore): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (performance.now() < deadline && (await store.read('any').catch(() => 'refused')) !== 'refused');
}

async function first<Item>(items: AsyncIterable<Item>): Promise<Item | undefined> {
  for await (const item of items) return item;
  return undefined;
}
