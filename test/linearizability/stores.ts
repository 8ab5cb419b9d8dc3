/** The stores as eight clients use them: each with a store object and connections of its own, and with what goes wrong there. */
import { setTimeout as sleep } from 'node:timers/promises';
import { MemoryStore } from '../../src/stores/memory.ts';
import { migratePostgres, PostgresStore } from '../../src/stores/postgres.ts';
import { RedisStore } from '../../src/stores/redis.ts';
import { openPool, startPostgres } from '../services/postgres.ts';
import { startProxy, type Proxy } from '../services/proxy.ts';
import { startRedis } from '../services/redis.ts';
import { newFile } from '../stores/sqlite/files.ts';
import { randomOf } from '../support/random.ts';
import type { Asked } from './clients.ts';
import type { StoreRules } from './run.ts';
import { distant } from './network.ts';
import { SqliteProcess } from './sqlite-processes.ts';

const CLIENTS = 8;

export interface Subject {
  readonly name: string;
  readonly rules: StoreRules;
  /** One for each client. */
  readonly stores: readonly Asked[];
  /** Makes things go wrong until the signal aborts, and leaves all well. */
  disturb?(signal: AbortSignal, seed: number): Promise<void>;
  close(): Promise<void>;
}

/** So long a client waits for an answer of a server. Longer than a healthy one takes here, when others use the machine too. */
const REQUEST_TIMEOUT_SECONDS = 0.8;
const LOSSES = 0.08;
/** Each for two clients, so that the others go on when one is cut off. So many processes on a SQLite file, likewise. */
const WAYS = 4;
const KILL_SECONDS = 0.7;
const places = Array.from({ length: CLIENTS }, (_, index) => index);

export async function memory(seed: number): Promise<Subject> {
  const store = new MemoryStore();
  const stores = places.map((index) => distant(store, seed * 7 + index, LOSSES));
  // Its clock is that of the calls, but for what is lost when seconds since 1970 are a number.
  const rules = { tokens: 'rise', clock: 'at its step', slack: 0.001 } as const;
  return { name: 'memory', rules, stores, close: () => store.close() };
}

export async function sqlite(seed: number): Promise<Subject> {
  const file = newFile();
  const processes = Array.from({ length: WAYS }, () => new SqliteProcess(file));
  for (const each of processes) await each.start();
  return {
    name: 'SQLite',
    // Its clock shows whole milliseconds, so two readings are up to one apart, and runs at the wall clock's rate.
    rules: { tokens: 'next', clock: 'within the call', slack: 1.2 },
    stores: places.map((index) => distant(processes[index % WAYS]!.store(), seed * 7 + index, LOSSES)),
    disturb: (signal) => killInTurn(processes, signal),
    close: async () => void (await Promise.all(processes.map((each) => each.kill()))),
  };
}

async function killInTurn(processes: readonly SqliteProcess[], signal: AbortSignal): Promise<void> {
  for (let turn = 0; !signal.aborted; turn += 1) {
    await sleep(KILL_SECONDS * 1000);
    const killed = processes[turn % processes.length]!;
    await killed.kill();
    await killed.start();
  }
}

export async function postgres(): Promise<Subject> {
  const server = await startPostgres();
  await migratePostgres({ url: server.url });
  const proxies = await proxiesTo(server.port);
  // Few connections, since each new one costs the server more than all the calls that are lost with the old.
  const pools = places.map((index) =>
    openPool(`postgres://postgres@127.0.0.1:${proxies[index % WAYS]!.port}/postgres`, { max: 2 }),
  );
  const options = { requestTimeoutSeconds: REQUEST_TIMEOUT_SECONDS, listen: false };
  const stores = await Promise.all(pools.map((pool) => PostgresStore.open({ pool, ...options })));
  await warmUp(stores);
  return {
    name: 'PostgreSQL',
    // Microseconds, at the wall clock's rate: that may be slewed by half a millisecond in a second.
    rules: { tokens: 'next', clock: 'within the call', slack: 0.3 },
    stores,
    disturb: (signal, seed) => disturb(proxies, server, signal, seed),
    close: async () => {
      await Promise.all(stores.map((store) => store.close()));
      await Promise.all(pools.map((pool) => pool.end()));
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await server.close();
    },
  };
}

export async function redis(): Promise<Subject> {
  const server = await startRedis({ appendonly: true });
  const proxies = await proxiesTo(server.port);
  const options = { requestTimeoutSeconds: REQUEST_TIMEOUT_SECONDS };
  const open = (index: number): Promise<RedisStore> =>
    RedisStore.open({ url: `redis://127.0.0.1:${proxies[index % WAYS]!.port}`, ...options });
  const stores = await Promise.all(places.map(open));
  await warmUp(stores);
  return {
    name: 'Redis',
    // As with PostgreSQL. A script is one step, and so is its look at the clock.
    rules: { tokens: 'rise', clock: 'at its step', slack: 0.3 },
    stores,
    disturb: (signal, seed) => disturb(proxies, server, signal, seed),
    close: async () => {
      await Promise.all(stores.map((store) => store.close()));
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await server.close();
    },
  };
}

async function proxiesTo(port: number): Promise<readonly Proxy[]> {
  return Promise.all(Array.from({ length: WAYS }, () => startProxy(port)));
}

/** What a server does once for each connection is not what the histories are about. */
async function warmUp(stores: readonly Asked[]): Promise<void> {
  const once = async (store: Asked, runId: string): Promise<void> => {
    const lease = { runId, workerId: 'w', acquisitionId: 'warm-up' };
    await store.acquire({ ...lease, ttlSeconds: 9 }).catch(() => undefined);
    await store.release(lease).catch(() => undefined);
  };
  await Promise.all(stores.flatMap((store, index) => [once(store, `warm ${index}`), once(store, `up ${index}`)]));
}

/** Requests that wait, requests and replies that are swallowed, connections that break before and after: then it is cut off. */
const FAULTS = ['holdRequests', 'dropRequests', 'dropReplies', 'cutOnReply', 'refuse'] as const;
const RESTART_SECONDS = 6;

/** Ended in order or as by a crash: what it has acknowledged it keeps over both. */
type Stoppable = Pick<Awaited<ReturnType<typeof startPostgres>>, 'restart' | 'kill9' | 'start'>;

async function disturb(proxies: readonly Proxy[], server: Stoppable, signal: AbortSignal, seed: number): Promise<void> {
  const random = randomOf(seed);
  let restartedAt = performance.now() - (RESTART_SECONDS / 2) * 1000;
  while (!signal.aborted) {
    await sleep(50 + 250 * random());
    if (performance.now() - restartedAt > RESTART_SECONDS * 1000) {
      await (random() < 0.5 ? server.restart() : server.kill9().then(() => server.start()));
      restartedAt = performance.now();
      continue;
    }
    const proxy = proxies[Math.floor(random() * proxies.length)]!;
    const fault = FAULTS[Math.floor(random() * FAULTS.length)]!;
    proxy.set(fault);
    await sleep(20 + 100 * random());
    // Bytes that were swallowed would be missing in what follows on the same connection, which no network does.
    if (fault !== 'holdRequests') proxy.cut();
    proxy.set('pass');
  }
}
