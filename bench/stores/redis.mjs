import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { RedisStore } from 'lessor';
import { load, versionOf } from './packages.mjs';
import { loadService } from './services.mjs';

const TTL_MS = 30_000;

/** One server without persistence, and one connection of `ioredis` for each candidate, as a process has it. */
export async function openRedis({ onEnd }) {
  const { startRedis } = await loadService('redis');
  const server = await startRedis();
  onEnd(() => server.close());
  const connect = () => {
    const client = new Redis(server.url);
    onEnd(() => client.disconnect());
    return client;
  };
  const store = await RedisStore.open({ client: connect() });
  onEnd(() => store.close());
  const [, version] = /redis_version:(\S+)/.exec(String(await server.command('INFO', 'server')));
  const libraries = [redlock, sesamecareRedlock, redlockUniversal, redisSemaphore];
  return {
    title: `Redis ${version}`,
    store,
    others: [
      { name: 'raw SET NX PX, compare and delete', aim: 0.9, once: raw(connect()) },
      ...libraries.map((library) => ({ aim: 1, ...library(connect()) })),
    ],
    renewAim: 5,
  };
}

function raw(client) {
  client.defineCommand('unlock', {
    numberOfKeys: 1,
    lua: `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end`,
  });
  return async (runId) => {
    const owner = randomUUID();
    const key = `raw:${runId}`;
    if ((await client.set(key, owner, 'PX', TTL_MS, 'NX')) !== 'OK') throw new Error(`${runId} was not granted`);
    if ((await client.unlock(key, owner)) !== 1) throw new Error(`${runId} was not released`);
  };
}

function redlock(client) {
  const Redlock = load('redlock');
  const locks = new Redlock([client], { retryCount: 0 });
  const once = async (runId) => (await locks.lock(`redlock:${runId}`, TTL_MS)).unlock();
  return { name: versionOf('redlock'), once };
}

function sesamecareRedlock(client) {
  const { Redlock } = load('@sesamecare-oss/redlock');
  const locks = new Redlock([client], { retryCount: 0 });
  const once = async (runId) => (await locks.acquire([`sesamecare:${runId}`], TTL_MS)).release();
  return { name: versionOf('@sesamecare-oss/redlock'), once };
}

function redlockUniversal(client) {
  const { createLock, IoredisAdapter } = load('redlock-universal');
  const adapter = new IoredisAdapter(client);
  const once = async (runId) => {
    const lock = createLock({ adapter, key: `universal:${runId}`, ttl: TTL_MS, retryAttempts: 0 });
    const handle = await lock.acquire();
    if (!(await lock.release(handle))) throw new Error(`${runId} was not released`);
  };
  return { name: versionOf('redlock-universal'), once };
}

/** Without its renewing by itself: no candidate does it here. */
function redisSemaphore(client) {
  const { Mutex } = load('redis-semaphore');
  const options = { lockTimeout: TTL_MS, refreshInterval: 0, acquireAttemptsLimit: 1 };
  const once = async (runId) => {
    const mutex = new Mutex(client, `semaphore:${runId}`, options);
    if (!(await mutex.tryAcquire())) throw new Error(`${runId} was not granted`);
    await mutex.release();
  };
  return { name: versionOf('redis-semaphore'), once };
}
