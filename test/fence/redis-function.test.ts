/** The function library on Redis, called by redis-cli. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { StoredLease } from '../../src/index.ts';
import { redisFunctionLibrary, RedisStore } from '../../src/stores/redis.ts';
import { findRedis, startRedis, type Redis } from '../services/redis.ts';
import { freshRun, until } from '../stores/postgres-fixtures.ts';
import { redisShell } from './clients.ts';
import { acquire } from './leases.ts';

const found = await findRedis();
const shell = await redisShell();
const TTL_SECONDS = 0.3;

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.skipIf(found === null || shell === null)('the function library, called by redis-cli', () => {
  let server: Redis;
  let store: RedisStore;
  let id: string;

  beforeAll(async () => {
    server = await startRedis();
    store = await RedisStore.open({ url: server.url });
    await shell!.send(server.url, 'FUNCTION', 'LOAD', redisFunctionLibrary);
  });

  beforeEach(() => void (id = freshRun()));

  afterAll(async () => {
    await store.close();
    await server.close();
  });

  const send = (...words: readonly (string | number)[]): Promise<string> => shell!.send(server.url, ...words);
  const status = (): Promise<string> => send('GET', `job:${id}`);

  /** What a worker shows of its lease, some of it wrong. */
  type Shown = Partial<Record<'workerId' | 'fencingToken' | 'acquisitionId', string | number>>;

  /** Sets the status of the run by the function. */
  function set(lease: StoredLease, value: string, wrong: Shown = {}): Promise<string> {
    const { workerId, fencingToken, acquisitionId } = { ...lease, ...wrong };
    const keys = [store.leaseKey(id), `job:${id}`];
    return send('FCALL', 'lessor_exec', 2, ...keys, workerId, fencingToken, acquisitionId, 'SET', `job:${id}`, value);
  }

  const lostFor = (reason: string, token: number): string =>
    `LEASELOST Lost the lease on run "${id}" (token ${token}): ${reason}`;
  const expired = (runId: string) => until(async () => (await store.read(runId))?.state === 'expired');

  it('B17 B18 an old token is refused, before the newer worker’s first write too, and the current one passes', async () => {
    const late = await acquire(store, id, 'worker-a', TTL_SECONDS);
    expect(await set(late, 'running')).toBe('OK');
    await expired(id);
    const next = await acquire(store, id, 'worker-b');
    await expect(set(late, 'late')).rejects.toThrow(lostFor('superseded', late.fencingToken));
    expect(await status()).toBe('running');
    expect(await set(next, 'done')).toBe('OK');
    await expect(set(late, 'late')).rejects.toThrow(lostFor('superseded', late.fencingToken));
    expect(await set(next, 'done twice', { acquisitionId: '' })).toBe('OK');
    expect(await status()).toBe('done twice');
  });

  it('B19 a token from the future, of another run or of another worker was never issued, and is refused as unknown', async () => {
    const other = await acquire(store, freshRun(), 'worker-a');
    await expect(set(other, 'of another run')).rejects.toThrow(lostFor('unknown', other.fencingToken));
    const lease = await acquire(store, id, 'worker-a');
    const future = lease.fencingToken + 1;
    await expect(set(lease, 'from the future', { fencingToken: future })).rejects.toThrow(lostFor('unknown', future));
    await expect(set(lease, 'of another worker', { workerId: 'worker-b' })).rejects.toThrow(
      lostFor('unknown', lease.fencingToken),
    );
    expect(await status()).toBe('');
    expect(await set(lease, 'done')).toBe('OK');
  });

  it('B19 TK8 expiry alone refuses nothing; a re-acquire, a release and a revocation do, each as what it is', async () => {
    const first = await acquire(store, id, 'worker-a');
    const lease = await acquire(store, id, 'worker-a', TTL_SECONDS);
    const { fencingToken } = lease;
    expect(fencingToken).toBe(first.fencingToken);
    await expect(set(first, 'an older handle')).rejects.toThrow(lostFor('superseded', fencingToken));
    await store.release(lease);
    await expect(set(lease, 'released')).rejects.toThrow(lostFor('released', fencingToken));
    const next = await acquire(store, id, 'worker-a', TTL_SECONDS);
    await expired(id);
    expect(await set(next, 'late but alone')).toBe('OK');
    await store.revoke(id, { by: 'an operator', reason: 'test' });
    await expect(set(next, 'revoked')).rejects.toThrow(lostFor('revoked', next.fencingToken));
    expect(await status()).toBe('late but alone');
  });

  it('TK14 at a token that was issued twice the one that has written passes, and the other is refused', async () => {
    const lease = await acquire(store, id, 'worker-a');
    await set(lease, 'done');
    await server.command('HSET', store.leaseKey(id), 'acquisition', 'another');
    await expect(set(lease, 'late', { acquisitionId: 'another' })).rejects.toThrow(
      lostFor('superseded', lease.fencingToken),
    );
    expect(await status()).toBe('done');
  });

  it.each([
    ['no token at all', ['worker-a'], 'got none'],
    ['an empty token', ['worker-a', '', '', 'SET', 'key', 'x'], 'got ""'],
    ['a token that is no number', ['worker-a', '7.0', '', 'SET', 'key', 'x'], 'got "7.0"'],
    ['no acquisition and no command', ['worker-a', '7'], 'a worker, a fencing token, an acquisition and a command'],
    ['no command', ['worker-a', '7', ''], 'a worker, a fencing token, an acquisition and a command'],
  ])('B19 a call with %s is an error that says so, and never unfenced', async (_what, words, said) => {
    await acquire(store, id, 'worker-a');
    const call = send('FCALL', 'lessor_exec', 2, store.leaseKey(id), 'key', ...words);
    await expect(call).rejects.toThrow(said);
    expect(await send('EXISTS', 'key')).toBe('0');
    expect(await send('HEXISTS', store.leaseKey(id), 'shown')).toBe('0');
  });

  it('a first key that is no lease’s is named, and so is a command with more words than Lua takes', async () => {
    const lease = await acquire(store, id, 'worker-a');
    const rest = [lease.workerId, lease.fencingToken, lease.acquisitionId];
    await expect(send('FCALL', 'lessor_exec', 0, ...rest, 'GET', 'key')).rejects.toThrow('of a lease, got none');
    await expect(send('FCALL', 'lessor_exec', 1, 'key', ...rest, 'GET', 'key')).rejects.toThrow('got "key"');
    const long = send(
      'FCALL',
      'lessor_exec',
      2,
      store.leaseKey(id),
      'list',
      ...rest,
      'RPUSH',
      ...Array(7000).fill('list'),
    );
    await expect(long).rejects.toThrow('at most 7000 words, got 7001');
    const most = send(
      'FCALL',
      'lessor_exec',
      2,
      store.leaseKey(id),
      'list',
      ...rest,
      'RPUSH',
      ...Array(6999).fill('list'),
    );
    expect(await most).toBe('6998');
  });
});
