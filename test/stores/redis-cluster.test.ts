/** On three nodes: each call in one slot, many renewals at once, a node that is down. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StoredLease } from '../../src/lease.ts';
import { RedisKeys, bucketOf } from '../../src/stores/redis/keys.ts';
import { RedisStore } from '../../src/stores/redis.ts';
import type { LeaseStore } from '../../src/stores/store.ts';
import { findRedis, type Redis } from '../services/redis.ts';
import { startRedisCluster, type RedisCluster } from '../services/redis-cluster.ts';
import { CLUSTER_CLIENTS, freshPrefix, type OpenClient } from './redis-clients.ts';

const isPresent = (await findRedis()) !== null;

const NAMES = [
  '{',
  '}',
  '{}',
  '}{',
  '{a}',
  'a{b}c',
  '{}{x}',
  'x}',
  'plain',
  '{{}}',
  'ünï{ç}ode',
  ' {blank} ',
  '*?[',
  '%s',
];

for (const [name, connect] of Object.entries(CLUSTER_CLIENTS)) {
  // Where it cannot be had: a line says so on a laptop, and CI fails.
  describe.runIf(isPresent)(`through ${name}`, () => {
    let cluster: RedisCluster;
    let open: OpenClient;
    let store: RedisStore;
    let prefix: string;
    beforeAll(async () => {
      cluster = await startRedisCluster();
      open = await connect(cluster.nodes[0]!.port);
      prefix = freshPrefix();
      store = await RedisStore.open({ client: open.client, prefix, requestTimeoutSeconds: 3 });
    });
    afterAll(async () => {
      await store.close();
      open.end();
      await cluster.close();
    });

    it('RD1. Each call stays in one slot, for every run name', async () => {
      for (const runId of NAMES) {
        const lease = await acquire(store, runId);
        expect(await store.renew([lease], 60)).toMatchObject([{ status: 'renewed' }]);
        expect(await store.read(runId)).toMatchObject({ runId, state: 'held', fencingToken: lease.fencingToken });
        expect(await store.currentFence(runId)).toBe(lease.fencingToken);
        expect(await store.release(lease)).toBe(true);
        const again = await acquire(store, runId);
        expect(again.fencingToken).toBeGreaterThan(lease.fencingToken);
        expect(await store.revoke(runId, { by: 'op', reason: 'test' })).toMatchObject({ runId, workerId: 'w' });
        expect(await store.renew([again], 60)).toEqual([{ status: 'lost', reason: 'revoked' }]);
      }
      const listed: string[] = [];
      for await (const record of store.list()) listed.push(record.runId);
      expect(listed).toEqual(NAMES.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other))));
    });

    it('RD1. All keys of a run have one hash tag, and runs are on all nodes', async () => {
      const keys = new RedisKeys(prefix);
      const nodes = new Set<Redis>();
      for (let index = 0; index < 50; index += 1) {
        const runId = `{x}-${index}`;
        const [lease, runs] = [keys.lease(runId), keys.runs(bucketOf(runId))];
        expect(await cluster.nodes[0]!.command('CLUSTER', 'KEYSLOT', lease)).toBe(
          await cluster.nodes[0]!.command('CLUSTER', 'KEYSLOT', runs),
        );
        nodes.add(await cluster.nodeOf(lease));
      }
      expect(nodes.size).toBe(3);
    });

    it('RD1. A batch of renewals over all slots works, one result each in order', async () => {
      const leases = await Promise.all(Array.from({ length: 500 }, (_, index) => acquire(store, `batch-${index}`)));
      const late = { ...leases[250]!, acquisitionId: randomUUID() };
      const results = await store.renew([...leases, late, leases[0]!], 60);
      expect(results).toHaveLength(502);
      expect(results[500]).toEqual({ status: 'lost', reason: 'superseded' });
      for (const [index, result] of results.entries()) {
        if (index !== 500) expect(result.status, `reference ${index}`).toBe('renewed');
      }
      for (const lease of leases) await store.release(lease);
    });

    it('a release on one node wakes a waiter whose messages come from another', async () => {
      for (const runId of ['wake-1', 'wake-2', 'wake-3', 'wake-4']) {
        const lease = await acquire(store, runId);
        const ended = new AbortController();
        const changes = store.changes([runId], { signal: ended.signal })[Symbol.asyncIterator]();
        // The first hint says that the messages have begun.
        expect(await changes.next()).toEqual({ done: false, value: { runId } });
        const change = changes.next();
        await store.release(lease);
        expect(await change).toEqual({ done: false, value: { runId } });
        ended.abort();
        expect(await changes.next()).toMatchObject({ done: true });
      }
    });

    it('a node that is down takes its own runs away only, and they come back with it', async () => {
      const keys = new RedisKeys(prefix);
      const [down] = cluster.nodes.slice(2);
      const runs: { runId: string; isDown: boolean }[] = [];
      for (let index = 0; index < 12; index += 1) {
        const runId = `node-${index}`;
        runs.push({ runId, isDown: (await cluster.nodeOf(keys.lease(runId))) === down });
        await acquire(store, runId);
      }
      expect(new Set(runs.map(({ isDown }) => isDown)).size).toBe(2);
      await down!.stop();
      for (const { runId, isDown } of runs) {
        if (isDown) await expect(store.read(runId)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
        else expect(await eventually(() => store.read(runId))).toMatchObject({ state: 'held' });
      }
      await down!.start();
      // It kept nothing: whoever asks it is told so.
      const lost = runs.find(({ isDown }) => isDown)!;
      await expect(eventually(() => store.read(lost.runId))).rejects.toMatchObject({ code: 'STATE_LOST' });
    });
  });
}

async function acquire(store: LeaseStore, runId: string): Promise<StoredLease> {
  const result = await store.acquire({ runId, workerId: 'w', acquisitionId: randomUUID(), ttlSeconds: 30 });
  if (result.status !== 'granted') throw new Error(`Expected a grant, got ${JSON.stringify(result)}`);
  return result.lease;
}

async function eventually<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if ((error as { code?: string }).code !== 'STORE_UNAVAILABLE' || performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
