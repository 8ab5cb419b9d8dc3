/** Which client it is that came, and a connection of the store's own like it. */
import { inspect } from 'node:util';
import type { RedisConnection } from './connection.ts';
import { connectIoredis, duplicateIoredis, type IoredisClient } from './ioredis.ts';
import { connectNodeRedis, duplicateNodeRedis, type NodeRedisClient, type NodeRedisCluster } from './node-redis.ts';

/** A client of `ioredis` (`new Redis()`, `new Cluster()`) or of `redis` (`createClient()`, `createCluster()`). */
export type RedisClient = IoredisLike | NodeRedisLike;

/** What tells a client of `ioredis`. */
export interface IoredisLike {
  readonly status: string;
  duplicate(): unknown;
}

/** What tells a client of `redis`. */
export interface NodeRedisLike {
  readonly isOpen: boolean;
  duplicate(): unknown;
}

const EXPECTED = 'a client of `ioredis` (Redis or Cluster) or of `redis` (createClient or createCluster)';

/** Connects like the client, which stays the caller's and is used for nothing else. */
export function connectLike(client: unknown, requestTimeoutSeconds: number): RedisConnection {
  if (isIoredis(client)) {
    if (client.status === 'end')
      throw new TypeError(`Expected \`client\` to be open, got a closed client of \`ioredis\``);
    return connectIoredis(duplicateIoredis(client, requestTimeoutSeconds), client.options.keyPrefix);
  }
  if (isNodeRedis(client)) {
    if (!client.isOpen) {
      throw new TypeError(
        'Expected `client` to be open, got a client of `redis` that is closed or was never connected',
      );
    }
    return connectNodeRedis(duplicateNodeRedis(client, requestTimeoutSeconds), client.options?.keyPrefix);
  }
  throw new TypeError(`Expected \`client\` to be ${EXPECTED}, got ${describe(client)}`);
}

function isIoredis(client: unknown): client is IoredisClient {
  return has(client, 'status', 'string') && has(client, 'call', 'function') && has(client, 'duplicate', 'function');
}

/** A pool is none: it has no connection that could be duplicated. */
function isNodeRedis(client: unknown): client is NodeRedisClient | NodeRedisCluster {
  return (
    has(client, 'isOpen', 'boolean') &&
    has(client, 'isReady', 'boolean') &&
    has(client, 'sendCommand', 'function') &&
    has(client, 'duplicate', 'function') &&
    !has(client, 'getSentinelNode', 'function')
  );
}

function has(value: unknown, member: string, type: string): boolean {
  return typeof value === 'object' && value !== null && typeof (value as Record<string, unknown>)[member] === type;
}

function describe(value: unknown): string {
  if (typeof value !== 'object' || value === null) return inspect(value);
  const keys = Object.keys(value);
  const name: unknown = value.constructor?.name;
  return keys.length === 0 && name === 'Object' ? 'an empty object' : `an object of class ${String(name)}`;
}
