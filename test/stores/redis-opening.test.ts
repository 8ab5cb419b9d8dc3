/** What is refused when the store is made, and what is found out about the server. */
import { EventEmitter } from 'node:events';
import { Cluster, Redis as Ioredis } from 'ioredis';
import pg from 'pg';
import { createClient, createClientPool } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisStore, type RedisClient } from '../../src/stores/redis.ts';
import { findRedis, startRedis, type Redis, type RedisOptions } from '../services/redis.ts';
import { startRedisCluster } from '../services/redis-cluster.ts';
import { CLIENTS, freshPrefix, openAt } from './redis-clients.ts';

const isPresent = (await findRedis()) !== null;

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.runIf(isPresent)('the client', () => {
  let server: Redis;
  beforeAll(async () => void (server = await startRedis()));
  afterAll(() => server.close());

  for (const [name, connect] of Object.entries(CLIENTS)) {
    it(`PK2. A client of ${name} is taken for what it is, and stays open when the store closes`, async () => {
      const { client, end } = await connect(server.port);
      const store = await RedisStore.open({ client, prefix: freshPrefix() });
      expect(await store.read('run')).toBeNull();
      await store.close();
      await store.close();
      const again = await RedisStore.open({ client, prefix: freshPrefix() });
      expect(await again.currentFence('run')).toBe(0);
      await again.close();
      end();
    });
  }

  it('PK2. A client of the wrong kind is refused when the store is made, with what came', async () => {
    const pool = new pg.Pool({ connectionString: 'postgres://127.0.0.1:1/none' });
    const redisPool = createClientPool({ url: server.url });
    const wrong: [unknown, string][] = [
      [{}, 'an empty object'],
      [null, 'null'],
      ['redis', "'redis'"],
      [pool, 'an object of class'],
      [redisPool, 'an object of class'],
      [new EventEmitter(), 'an object of class EventEmitter'],
      [new Map(), 'an object of class Map'],
    ];
    for (const [client, came] of wrong) {
      const opening = RedisStore.open({ client: client as RedisClient });
      await expect(opening).rejects.toThrow(TypeError);
      await expect(opening).rejects.toThrow(`to be a client of \`ioredis\` (Redis or Cluster) or of \`redis\``);
      await expect(opening).rejects.toThrow(came);
    }
    await pool.end();
  });

  it('PK2. A client that is closed, or was never connected, is refused when the store is made', async () => {
    const ioredis = new Ioredis(server.port);
    ioredis.disconnect();
    await new Promise((resolve) => ioredis.once('end', resolve));
    await expect(RedisStore.open({ client: ioredis })).rejects.toThrow('a closed client of `ioredis`');
    const redis = createClient({ url: server.url });
    await expect(RedisStore.open({ client: redis })).rejects.toThrow('is closed or was never connected');
    await redis.connect();
    redis.destroy();
    await expect(RedisStore.open({ client: redis })).rejects.toThrow('is closed or was never connected');
  });

  it('PK2. A URL of something else is refused when the store is made, and its password is not told', async () => {
    const opening = RedisStore.open({ url: 'postgres://someone:secret@127.0.0.1/jobs' });
    await expect(opening).rejects.toThrow('begins with "redis:" or "rediss:", got one that begins with "postgres:"');
    await expect(opening).rejects.not.toThrow('secret');
    for (const url of ['', 'localhost', 7, undefined] as string[]) {
      await expect(RedisStore.open({ url })).rejects.toThrow(TypeError);
    }
    const client = new Ioredis(server.port);
    await expect(RedisStore.open({ client, url: server.url })).rejects.toThrow('got both');
    client.disconnect();
  });

  it('I options that make no sense are refused before any connection is opened', async () => {
    const { url } = server;
    await expect(RedisStore.open({ url, prefix: 'a{b}' })).rejects.toThrow('to hold no braces');
    await expect(RedisStore.open({ url, prefix: '' })).rejects.toThrow(RangeError);
    for (const requestTimeoutSeconds of [0, -1, NaN, Infinity]) {
      await expect(RedisStore.open({ url, requestTimeoutSeconds })).rejects.toThrow(RangeError);
    }
    await expect(RedisStore.open({ url, requestTimeoutSeconds: '1' as never })).rejects.toThrow(TypeError);
  });

  it('a lazy client, one with a key prefix and one that gives bytes work as any other', async () => {
    const lazy = new Ioredis(server.port, { lazyConnect: true, keyPrefix: 'mine-' });
    const prefix = freshPrefix();
    const store = await RedisStore.open({ client: lazy, prefix });
    const request = { runId: 'r', workerId: 'w', acquisitionId: 'a', ttlSeconds: 30 };
    const result = await store.acquire(request);
    const keys = (await server.command('KEYS', `mine-${prefix}*lease:r`)) as string[];
    expect(keys).toHaveLength(1);
    await store.close();
    lazy.disconnect();
    const bytes = await createClient({ url: server.url, commandOptions: { typeMapping: { 36: Buffer } } }).connect();
    const other = await RedisStore.open({ client: bytes, prefix: `mine-${prefix}` });
    expect(await other.acquire(request)).toMatchObject({ extended: true, lease: { fencingToken: tokenOf(result) } });
    await other.close();
    bytes.destroy();
  });

  it('a store of an unreachable server is not made, and leaves nothing behind', async () => {
    const dead = await startRedis();
    await dead.close();
    await expect(RedisStore.open({ url: dead.url })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    const client = new Ioredis(dead.port);
    client.on('error', () => {});
    await expect(RedisStore.open({ client })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    client.disconnect();
    const cluster = new Cluster([{ host: '127.0.0.1', port: dead.port }]);
    cluster.on('error', () => {});
    await expect(RedisStore.open({ client: cluster })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    cluster.disconnect();
  });
});

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.runIf(isPresent)('B9 what the server can lose is read at opening and reported', () => {
  const levels: [string, RedisOptions, string, RegExp][] = [
    ['nothing is kept without the append-only file', {}, 'nothing', /loses all leases/],
    ['nothing newer than a snapshot is kept', { config: { save: '900 1' } }, 'nothing', /last snapshot/],
    ['a crash of the process is survived', everysec(), 'process-crash', /about a second/],
    ['a power loss is survived', { appendonly: true }, 'power-loss', /Replication is asynchronous/],
  ];
  for (const [what, options, survives, warning] of levels) {
    it(`${what}: \`${survives}\``, async () => {
      const server = await startRedis(options);
      const store = await openAt(server);
      expect(store.durability.survives).toBe(survives);
      expect(store.durability.warnings.join('\n')).toMatch(warning);
      await store.close();
      await server.close();
    });
  }

  it('a server that does not tell is `unknown`', async () => {
    const server = await startRedis({ appendonly: true });
    await server.command('ACL', 'SETUSER', 'default', '-config', '-info');
    const store = await openAt(server);
    expect(store.durability.survives).toBe('unknown');
    expect(store.durability.warnings.join('\n')).toMatch(/does not tell/);
    await store.close();
    await server.close();
  });

  it('a server that tells no more than `INFO` survives a crash of the process at least', async () => {
    const server = await startRedis({ appendonly: true });
    await server.command('ACL', 'SETUSER', 'default', '-config');
    const store = await openAt(server);
    expect(store.durability.survives).toBe('process-crash');
    await store.close();
    await server.close();
  });

  it('RD3. A policy that drops leases is refused, unless told otherwise, and then reported', async () => {
    const server = await startRedis({ config: { maxmemory: '50mb', 'maxmemory-policy': 'allkeys-lru' } });
    await expect(openAt(server)).rejects.toThrow(/spare leases.*allkeys-lru.*allowEviction/);
    const store = await openAt(server, { allowEviction: true });
    expect(store.durability.warnings.join('\n')).toMatch(/allkeys-lru drops leases/);
    await store.close();
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'volatile-lru');
    await (await openAt(server)).close();
    await server.close();
  });

  it('B13 a replica is refused at opening, and a primary that became one refuses every call, reads too', async () => {
    const primary = await startRedis();
    const replica = await startRedis({ replicaOf: primary });
    await expect(openAt(replica)).rejects.toThrow(/READONLY/);
    const store = await openAt(primary);
    const request = { runId: 'r', workerId: 'w', acquisitionId: 'a', ttlSeconds: 30 };
    await store.acquire(request);
    // Of a primary that cannot be reached, so that it keeps its data: old from now on.
    await replica.close();
    await primary.command('REPLICAOF', '127.0.0.1', String(replica.port));
    const calls = [
      store.acquire(request),
      store.read('r'),
      store.currentFence('r'),
      store.list()[Symbol.asyncIterator]().next(),
    ];
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await primary.command('REPLICAOF', 'NO', 'ONE');
    expect(await store.read('r')).toMatchObject({ state: 'held' });
    await store.close();
    await primary.close();
  });
});

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.runIf(isPresent)('a cluster', () => {
  it('is found from the URL of any of its nodes, and refused to the client of a single one', async () => {
    const cluster = await startRedisCluster();
    const store = await openAt(cluster.nodes[1]!);
    for (const runId of ['a', 'b', 'c', 'd', 'e', 'f']) {
      const result = await store.acquire({ runId, workerId: 'w', acquisitionId: 'a', ttlSeconds: 30 });
      expect(result.status).toBe('granted');
    }
    await store.close();
    const single = new Ioredis(cluster.nodes[0]!.port);
    await expect(RedisStore.open({ client: single })).rejects.toThrow(/got a client of a single one of its nodes/);
    single.disconnect();
    await cluster.close();
  });
});

function everysec(): RedisOptions {
  return { appendonly: true, config: { appendfsync: 'everysec' } };
}

function tokenOf(result: unknown): number {
  return (result as { lease: { fencingToken: number } }).lease.fencingToken;
}
