/** A connection from a URL, by whichever client is installed, to the server or to the cluster that it belongs to. */
import { StoreUnavailableError } from '../../errors.ts';
import { inspect } from 'node:util';
import { RedisCalls } from './calls.ts';
import type { RedisConnection } from './connection.ts';
import { SINGLE_OPTIONS, clusterOptions, connectIoredis, type IoredisClient } from './ioredis.ts';
import { connectNodeRedis, type NodeRedisClient, type NodeRedisCluster } from './node-redis.ts';

/** @throws TypeError when it is no URL of Redis. */
export function checkRedisUrl(url: unknown): asserts url is string {
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol === 'redis:' || parsed?.protocol === 'rediss:') return;
  // A URL may hold a password: only its scheme is told.
  const came = parsed ? `one that begins with "${parsed.protocol}"` : typeof url === 'string' ? 'no URL' : inspect(url);
  throw new TypeError(`Expected \`url\` to be a URL that begins with "redis:" or "rediss:", got ${came}`);
}

/** @throws StoreUnavailableError when the server cannot be reached. */
export async function connectUrl(url: string, timeoutSeconds: number): Promise<RedisConnection> {
  const openers = await findClient(url, timeoutSeconds);
  const single = openers.single();
  const calls = new RedisCalls(single, timeoutSeconds);
  try {
    await calls.untilReady();
    if (!(await isClusterNode(single))) return single;
  } catch (error) {
    single.end();
    throw error;
  } finally {
    calls.close();
  }
  single.end();
  return openers.cluster();
}

async function isClusterNode(single: RedisConnection): Promise<boolean> {
  // A server that refuses to tell is taken as a single one. On a cluster the first call says so.
  const info = await single.primaries()[0]!(['info', 'cluster']).catch(() => '');
  return String(info).includes('cluster_enabled:1');
}

interface Openers {
  single(): RedisConnection;
  cluster(): RedisConnection;
}

async function findClient(url: string, timeoutSeconds: number): Promise<Openers> {
  const { username, password, protocol } = new URL(url);
  const credentials = {
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
  };
  const tls = protocol === 'rediss:';
  const ioredis = await ifInstalled(() => import('ioredis'));
  if (ioredis) {
    const options = clusterOptions({ ...credentials, ...(tls && { tls: {} }) }, timeoutSeconds);
    return {
      single: () => connectIoredis(new ioredis.Redis(url, SINGLE_OPTIONS) as unknown as IoredisClient),
      cluster: () => connectIoredis(new ioredis.Cluster([url], options) as unknown as IoredisClient),
    };
  }
  const redis = await ifInstalled(() => import('redis'));
  if (redis) {
    const defaults = { ...credentials, socket: { tls }, disableOfflineQueue: true } as object;
    const single = { url, disableOfflineQueue: true };
    return {
      single: () => connectNodeRedis(redis.createClient(single) as unknown as NodeRedisClient),
      cluster: () =>
        connectNodeRedis(redis.createCluster({ rootNodes: [{ url }], defaults }) as unknown as NodeRedisCluster),
    };
  }
  throw new StoreUnavailableError(
    'A Redis store from a URL needs a client: `npm install ioredis`, or `npm install redis`',
  );
}

async function ifInstalled<Module>(load: () => Promise<Module>): Promise<Module | undefined> {
  try {
    return await load();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
