/** Lists and wake-ups. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StoredLease } from '../../src/lease.ts';
import { RedisStore } from '../../src/stores/redis.ts';
import type { LeaseStore } from '../../src/stores/store.ts';
import { startProxy } from '../services/proxy.ts';
import { findRedis, startRedis, type Redis } from '../services/redis.ts';
import { CLIENTS, freshPrefix, openAt, type OpenClient } from './redis-clients.ts';

const isPresent = (await findRedis()) !== null;

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.runIf(isPresent)('lists', () => {
  let server: Redis;
  let store: RedisStore;
  beforeAll(async () => {
    server = await startRedis();
    store = await openAt(server);
  });
  afterAll(async () => {
    await store.close();
    await server.close();
  });

  it('OB1. A run held throughout comes exactly once, in order, while others come and go', async () => {
    const held = Array.from({ length: 3_000 }, (_, index) => `held-${String(index).padStart(5, '0')}`);
    await Promise.all(held.map((runId) => acquire(store, runId)));
    let isListing = true;
    const coming = (async () => {
      for (let index = 0; isListing; index += 1) await store.release(await acquire(store, `come-${index % 500}`));
    })();
    const listed: string[] = [];
    for await (const record of store.list({ state: 'held' })) listed.push(record.runId);
    isListing = false;
    await coming;
    expect(listed.filter((runId) => runId.startsWith('held-'))).toEqual(held);
    expect(new Set(listed).size).toBe(listed.length);
  });

  it('NM2 a prefix is compared character by character, and meets no pattern', async () => {
    const names = ['p', 'p*', 'p*x', 'p?', 'p[a]', 'P*', 'pp', '\u{10FFFF}', '\u{10FFFF}\u{10FFFF}', 'é', 'e\u0301'];
    for (const runId of names) await acquire(store, runId);
    for (const prefix of ['p', 'p*', 'p?', '[', '\u{10FFFF}', 'é', 'none']) {
      const listed: string[] = [];
      for await (const record of store.list({ prefix })) listed.push(record.runId);
      expect(listed.toSorted()).toEqual(names.filter((runId) => runId.startsWith(prefix)).toSorted());
    }
  });

  it('no command of a list looks at all keys', async () => {
    await server.command('CONFIG', 'RESETSTAT');
    for await (const _ of store.list()) break;
    const stats = String(await server.command('INFO', 'commandstats'));
    expect(stats).toMatch(/cmdstat_zrangebylex/);
    expect(stats).not.toMatch(/cmdstat_(keys|scan|smembers|hgetall)/);
  });
});

for (const [name, connect] of Object.entries(CLIENTS)) {
  // Where it cannot be had: a line says so on a laptop, and CI fails.
  describe.runIf(isPresent)(`wake-ups through ${name}`, () => {
    let server: Redis;
    let open: OpenClient;
    beforeAll(async () => {
      server = await startRedis();
      open = await connect(server.port);
    });
    afterAll(async () => {
      open.end();
      await server.close();
    });

    it('a grant, a release and a revocation are told to those who watch the run, and to no other', async () => {
      const store = await RedisStore.open({ client: open.client, prefix: freshPrefix() });
      const ended = new AbortController();
      const changes = store.changes(['run'], { signal: ended.signal })[Symbol.asyncIterator]();
      const others = store.changes(['other'], { signal: ended.signal })[Symbol.asyncIterator]();
      await Promise.all([changes.next(), others.next()]);
      const other = others.next();
      let isTold = false;
      void other.then(() => (isTold = true));
      let lease: StoredLease;
      const acts = [
        async () => void (lease = await acquire(store, 'run')),
        async () => void (await store.release(lease)),
        async () => void (lease = await acquire(store, 'run')),
        async () => void (await store.revoke('run', { by: 'op', reason: 'test' })),
      ];
      for (const act of acts) {
        const change = changes.next();
        await act();
        expect(await change).toEqual({ done: false, value: { runId: 'run' } });
      }
      expect(isTold).toBe(false);
      ended.abort();
      expect(await changes.next()).toMatchObject({ done: true });
      await other;
      await store.close();
    });

    it('two hundred waiters share one connection, and none is left when they and the store have ended', async () => {
      // Those of the test before take a moment to go. What stays is the client's own.
      const before = 1;
      await until(async () => (await connections(server)) === before);
      const store = await RedisStore.open({ client: open.client, prefix: freshPrefix() });
      const ended = new AbortController();
      const waiters = Array.from({ length: 200 }, async (_, index) => {
        const told: string[] = [];
        for await (const { runId } of store.changes([`run-${index % 20}`], { signal: ended.signal })) told.push(runId);
        return told;
      });
      await acquire(store, 'run-0');
      await until(async () => (await connections(server)) === before + 2);
      ended.abort();
      await Promise.all(waiters);
      expect(await server.command('PUBSUB', 'NUMSUB', 'x')).toEqual(['x', 0]);
      await until(async () => ((await server.command('PUBSUB', 'CHANNELS')) as string[]).length === 0);
      await store.close();
      await until(async () => (await connections(server)) === before);
    });

    it('after its connection broke a watch goes on, with a hint for what it may have missed', async () => {
      const proxy = await startProxy(server.port);
      const behind = await connect(proxy.port);
      const prefix = freshPrefix();
      const store = await RedisStore.open({ client: behind.client, prefix });
      const direct = await RedisStore.open({ client: open.client, prefix });
      const ended = new AbortController();
      const changes = store.changes(['run'], { signal: ended.signal })[Symbol.asyncIterator]();
      await changes.next();
      const missed = changes.next();
      proxy.cut();
      await acquire(direct, 'run');
      expect(await missed).toMatchObject({ value: { runId: 'run' } });
      ended.abort();
      await store.close();
      await direct.close();
      behind.end();
      await proxy.close();
    });

    it('closing the store ends its watches, also one whose connection is just being opened', async () => {
      const store = await RedisStore.open({ client: open.client, prefix: freshPrefix() });
      const watching = store.changes(['run'], { signal: new AbortController().signal })[Symbol.asyncIterator]().next();
      await store.close();
      expect(await watching).toMatchObject({ done: true });
    });
  });
}

async function acquire(store: LeaseStore, runId: string): Promise<StoredLease> {
  const result = await store.acquire({ runId, workerId: 'w', acquisitionId: randomUUID(), ttlSeconds: 30 });
  if (result.status !== 'granted') throw new Error(`Expected a grant, got ${JSON.stringify(result)}`);
  return result.lease;
}

/** How many connections there are beside those that a test asks with. */
async function connections(server: Redis): Promise<number> {
  const clients = String(await server.command('CLIENT', 'LIST'))
    .trim()
    .split('\n');
  return clients.filter((client) => !/cmd=(client\|list|pubsub\|\w+) /.test(client)).length;
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error('It did not come about in 20 s');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
