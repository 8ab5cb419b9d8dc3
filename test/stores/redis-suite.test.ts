/** The contract, on a single server and on a cluster, through each client. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { RedisKeys } from '../../src/stores/redis/keys.ts';
import { RedisStore } from '../../src/stores/redis.ts';
import type { LeaseStore } from '../../src/stores/store.ts';
import { testLeaseStore } from '../../src/testing/store-suite.ts';
import { findRedis, startRedis, type Redis } from '../services/redis.ts';
import { startRedisCluster, type RedisCluster } from '../services/redis-cluster.ts';
import { CLIENTS, CLUSTER_CLIENTS, freshPrefix, openAt, type OpenClient } from './redis-clients.ts';

const isPresent = (await findRedis()) !== null;

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.runIf(isPresent)('a single server', () => {
  let server: Redis;
  beforeAll(async () => void (server = await startRedis()));
  afterAll(() => server.close());
  for (const [name, connect] of Object.entries(CLIENTS)) runKit(name, connect, async () => server);
});

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.runIf(isPresent)('a cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => void (cluster = await startRedisCluster()));
  afterAll(() => cluster.close());
  for (const [name, connect] of Object.entries(CLUSTER_CLIENTS)) runKit(name, connect, (key) => cluster.nodeOf(key));
});

/** @param serverOf - the server that has the key. */
function runKit(
  name: string,
  connect: (port: number) => Promise<OpenClient>,
  serverOf: (key: string) => Promise<Redis>,
): void {
  const prefixes = new WeakMap<LeaseStore, string>();
  let open: OpenClient;
  beforeAll(async () => void (open = await connect((await serverOf('any')).port)));
  afterAll(() => open.end());
  const create = async (prefix = freshPrefix()): Promise<LeaseStore> => {
    const store = await RedisStore.open({ client: open.client, prefix });
    prefixes.set(store, prefix);
    return store;
  };
  testLeaseStore(
    { describe, it },
    {
      name: `Redis through ${name}`,
      create: () => create(),
      ttlSeconds: 0.5,
      advance: (seconds) => sleep(Math.ceil(seconds * 1000) + 2),
      timePasses: true,
      // The full thousand on a single server: on a cluster each round takes the same step.
      takeOverRounds: name.includes('cluster') ? 200 : 1000,
      reopen: (store) => create(prefixes.get(store)),
      plantToken: async (store, runId, fencingToken) => {
        const key = new RedisKeys(prefixes.get(store)!).lease(runId);
        const server = await serverOf(key);
        await server.command('HSET', key, 'token', String(fencingToken));
        const { length } = (await server.command('HKEYS', key)) as readonly string[];
        if (length === 1) await server.command('HSET', key, ...PAST_LEASE);
      },
      unreachable: async () => {
        const server = await startRedis();
        const store = await openAt(server);
        await server.close();
        return store;
      },
    },
  );
}

/** What the record of a run that was released long ago has beside its token. */
const PAST_LEASE = [
  'worker',
  'w',
  'acquisition',
  'a',
  'expires',
  '1',
  'ended',
  'released',
  'acquired',
  '1',
  'ttl',
  '1',
];
