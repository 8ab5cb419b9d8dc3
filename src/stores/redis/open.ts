/** Opens a connection, looks at what the server keeps, and puts the markers there. */
import { checkDuration, checkName, checkObject } from '../../options.ts';
import type { Durability } from '../store.ts';
import { RedisCalls } from './calls.ts';
import { connectLike, type RedisClient } from './client.ts';
import type { RedisConnection } from './connection.ts';
import { readDurability } from './durability.ts';
import { RedisKeys } from './keys.ts';
import { openMarkers } from './markers.ts';
import { checkRedisUrl, connectUrl } from './url.ts';

/** Exactly one of `client` and `url`. */
export interface RedisStoreOptions {
  /** Stays its owner's. The store opens connections like it, to the same servers. */
  readonly client?: RedisClient | undefined;
  /** `redis://` or, over TLS, `rediss://`. Needs `ioredis` or `redis` to be installed. Of a cluster: any of its nodes. */
  readonly url?: string | undefined;
  /** What the names of all keys begin with. Holds no braces. @default 'lessor' */
  readonly prefix?: string | undefined;
  /** How long a call waits for its answer, a broken connection included, in seconds. @default 5 */
  readonly requestTimeoutSeconds?: number | undefined;
  /** Takes a server that drops leases when its memory is full. @default false */
  readonly allowEviction?: boolean | undefined;
}

export interface OpenRedis {
  readonly connection: RedisConnection;
  readonly calls: RedisCalls;
  readonly keys: RedisKeys;
  readonly durability: Durability;
  /** By bucket. */
  readonly markers: readonly string[];
}

export async function openRedis(options: RedisStoreOptions): Promise<OpenRedis> {
  checkObject('options', options);
  const { client, url, prefix = 'lessor', requestTimeoutSeconds = 5, allowEviction = false } = options;
  checkName('prefix', prefix);
  if (/[{}]/.test(prefix)) throw new RangeError(`Expected \`prefix\` to hold no braces, got ${JSON.stringify(prefix)}`);
  checkDuration('requestTimeoutSeconds', requestTimeoutSeconds, 2 ** 30 / 1000);
  const connection = await connect(client, url, requestTimeoutSeconds);
  const calls = new RedisCalls(connection, requestTimeoutSeconds);
  try {
    await calls.untilReady();
    const { durability, evicts, isClusterNode } = await readDurability(connection);
    if (isClusterNode && !connection.isCluster) throw singleNodeError();
    if (evicts !== null && !allowEviction) throw evictionError(evicts);
    const keys = new RedisKeys(connection.keyPrefix + prefix);
    return { connection, calls, keys, durability, markers: await openMarkers(calls, keys, connection.isCluster) };
  } catch (error) {
    calls.close();
    connection.end();
    throw error;
  }
}

async function connect(client: unknown, url: unknown, timeoutSeconds: number): Promise<RedisConnection> {
  if (client !== undefined && url === undefined) return connectLike(client, timeoutSeconds);
  if (client !== undefined) throw new TypeError('Expected one of `client` and `url`, got both');
  checkRedisUrl(url);
  return connectUrl(url, timeoutSeconds);
}

function singleNodeError(): TypeError {
  return new TypeError(
    'Expected `client` to be a client of the cluster (`new Cluster()` of `ioredis`, `createCluster()` of `redis`), ' +
      'got a client of a single one of its nodes',
  );
}

function evictionError(policy: string): RangeError {
  return new RangeError(
    `Expected the server's \`maxmemory-policy\` to spare leases, as \`noeviction\` does, got ${policy}: ` +
      'a lease that is dropped is free for anyone. Change it, or open the store with `allowEviction: true`',
  );
}
