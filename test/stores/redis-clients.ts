/** The clients that the Redis store takes, each on real servers, with a prefix of its own. */
import { randomUUID } from 'node:crypto';
import { Cluster, Redis as Ioredis } from 'ioredis';
import { createClient, createCluster } from 'redis';
import { RedisStore, type RedisClient, type RedisStoreOptions } from '../../src/stores/redis.ts';
import type { Redis } from '../services/redis.ts';

export interface OpenClient {
  readonly client: RedisClient;
  end(): void;
}

/** By name: a client of the server or servers at these ports. */
export const CLIENTS = {
  ioredis: async (port: number): Promise<OpenClient> => {
    const client = new Ioredis(port, '127.0.0.1');
    client.on('error', ignore);
    return { client, end: () => client.disconnect() };
  },
  redis: async (port: number): Promise<OpenClient> => {
    const client = createClient({ url: `redis://127.0.0.1:${port}` });
    client.on('error', ignore);
    await client.connect();
    return { client, end: () => client.destroy() };
  },
} as const;

export const CLUSTER_CLIENTS = {
  'an ioredis cluster': async (port: number): Promise<OpenClient> => {
    const client = new Cluster([{ host: '127.0.0.1', port }]);
    client.on('error', ignore);
    return { client, end: () => client.disconnect() };
  },
  'a redis cluster': async (port: number): Promise<OpenClient> => {
    const client = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] });
    client.on('error', ignore);
    await client.connect();
    return { client, end: () => client.destroy() };
  },
} as const;

/** A prefix that no other test uses. */
export function freshPrefix(): string {
  return `t-${randomUUID()}`;
}

/** Opens a store on a connection of its own, ended with it. */
export function openAt(server: Redis, options: Omit<RedisStoreOptions, 'client' | 'url'> = {}): Promise<RedisStore> {
  return RedisStore.open({ url: server.url, ...options });
}

function ignore(): void {}
