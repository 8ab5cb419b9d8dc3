import { Redis } from 'ioredis';
import { redisFunctionLibrary, RedisStore } from 'lessor';
import { loadService } from '../stores/services.mjs';
import { acquireAll, sessionWrites } from './leases.mjs';

const AIM = 0.7;
const SEVERAL = 10;

/** One server without persistence, with the store's connection and one of the user's. */
export async function openRedis({ onEnd }) {
  const { startRedis } = await loadService('redis');
  const server = await startRedis();
  onEnd(() => server.close());
  const client = new Redis(server.url);
  onEnd(() => client.disconnect());
  const store = await RedisStore.open({ client });
  onEnd(() => store.close());
  await client.function('LOAD', redisFunctionLibrary);
  const [, version] = /redis_version:(\S+)/.exec(String(await server.command('INFO', 'server')));
  const leases = await acquireAll(store);
  return { title: `Redis ${version}`, store, leases, writes: [...writesBy(store, client), sessionWrites(store, AIM)] };
}

function writesBy(store, client) {
  const keyOf = ({ runId }) => `job:${runId}`;
  const one = (lease) => ['HSET', keyOf(lease), 'status', 'running', 'token', lease.fencingToken];
  const several = (lease) => Array.from({ length: SEVERAL }, (_, n) => ['hset', `${keyOf(lease)}:${n}`, 'n', n]);
  const plain = (lease) => client.call(...one(lease));
  const call = (lease) => {
    const shown = [lease.workerId, lease.fencingToken, lease.acquisitionId];
    return client.call('FCALL', 'lessor_exec', 2, store.leaseKey(lease.runId), keyOf(lease), ...shown, ...one(lease));
  };
  const multi = (lease) => client.multi(several(lease)).exec();
  const exec = (commands) => (lease) => store.fenced(lease).exec(commands(lease));
  return [
    { what: 'one HSET, store.fenced', fenced: exec((lease) => [one(lease)]), plain, aim: AIM },
    { what: 'one HSET, FCALL lessor_exec', fenced: call, plain, aim: AIM },
    { what: `${SEVERAL} HSET in a MULTI, store.fenced`, fenced: exec(several), plain: multi, aim: AIM },
  ];
}
