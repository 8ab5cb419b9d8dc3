/**
 * A worker stopped in the middle, on Redis: one server, and a cluster.
 *
 * There is no write in flight that a newer worker would have to wait for. Redis runs a script once its request has come whole,
 * from its check to its last write in one step, whatever the client does meanwhile. So a worker can be stopped before the
 * step or after it, with a session open or a MULTI filled, but never inside it, and what has been open all along is checked
 * when it is carried out.
 */
import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, describe } from 'vitest';
import { RedisKeys, hashTag } from '../../src/stores/redis/keys.ts';
import { redisFunctionLibrary } from '../../src/stores/redis.ts';
import { findRedis, startRedis, type Redis as RedisServer } from '../services/redis.ts';
import { startRedisCluster, type RedisCluster } from '../services/redis-cluster.ts';
import { freshRun, until } from '../stores/postgres-fixtures.ts';
import { lost } from './leases.ts';
import { lostByMessage, tellsTheStory, type Place } from './stopped-worker.ts';

const found = await findRedis();

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.skipIf(found === null)('workers stopped on Redis', () => {
  let server: RedisServer;
  let client: Redis;

  beforeAll(async () => {
    server = await startRedis();
    await server.command('FUNCTION', 'LOAD', redisFunctionLibrary);
    client = new Redis(server.url);
  });

  afterAll(async () => {
    client.disconnect();
    await server.close();
  });

  tellsTheStory(['session', 'exec', 'function', 'queued'], () => redisPlace(server.url, server, client));
});

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.skipIf(found === null)('workers stopped on a Redis cluster', () => {
  let cluster: RedisCluster;
  let client: Cluster;

  beforeAll(async () => {
    cluster = await startRedisCluster();
    await Promise.all(cluster.nodes.map((node) => node.command('FUNCTION', 'LOAD', redisFunctionLibrary)));
    client = new Cluster([{ host: '127.0.0.1', port: cluster.nodes[0]!.port }]);
  });

  afterAll(async () => {
    client.disconnect();
    await cluster.close();
  });

  // A MULTI is a matter of one connection to one node: the single server's story tells it.
  tellsTheStory(['session', 'exec', 'function'], () => {
    const [node] = cluster.nodes;
    return redisPlace(`${node!.url}?cluster`, node!, client);
  });
});

function redisPlace(url: string, clock: RedisServer, client: Redis | Cluster): Place {
  const keyOf = (runId: string): string => `job:${hashTag(runId)}:${runId}`;
  const now = async (): Promise<number> => {
    const [seconds, microseconds] = (await clock.command('TIME')) as readonly string[];
    return Number(seconds) + Number(microseconds) / 1_000_000;
  };
  return {
    url,
    addRun: async () => {
      const runId = freshRun();
      await client.set(keyOf(runId), 'new');
      return runId;
    },
    statusOf: async (way, runId) => {
      if (way !== 'session') return client.get(keyOf(runId));
      const json = await client.hget(new RedisKeys('lessor').document(runId), 'json');
      return json === null ? 'new' : (JSON.parse(json) as { status?: unknown }).status;
    },
    passed: async (seconds) => {
      const end = (await now()) + seconds;
      await until(async () => (await now()) >= end);
    },
    refusal: (way) => (way === 'function' || way === 'queued' ? lostByMessage() : lost('superseded')),
  };
}
