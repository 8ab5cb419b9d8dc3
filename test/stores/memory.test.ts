/** What the memory store does beside the contract, which `test/testing/memory-suite.test.ts` holds it to. */
import { describe, expect, it } from 'vitest';
import type { InspectionEvent } from 'xstate';
import { MemoryStore } from '../../src/index.ts';

const request = { runId: 'run-1', workerId: 'worker-a', acquisitionId: 'one', ttlSeconds: 10 };

describe('the memory store', () => {
  it.each([Number.NaN, Infinity, -Infinity])(
    'refuses a reading of %d from its clock, and changes nothing',
    async (odd) => {
      let seconds = 0;
      await using store = new MemoryStore({ now: () => seconds });
      await store.acquire(request);
      const lease = { ...request, fencingToken: 1 };
      const before = await store.read('run-1');
      seconds = odd;
      const refusal = expect.objectContaining({ name: 'RangeError', message: expect.stringContaining('`now()`') });
      const other = { ...request, workerId: 'worker-b', acquisitionId: 'two' };
      await expect(store.acquire(other)).rejects.toEqual(refusal);
      await expect(store.renew([lease], 10)).rejects.toEqual(refusal);
      await expect(store.revoke('run-1', { by: 'operator', reason: 'a test' })).rejects.toEqual(refusal);
      await expect(store.read('run-1')).rejects.toEqual(refusal);
      await expect(store.list().next()).rejects.toEqual(refusal);
      seconds = 0;
      expect(await store.read('run-1')).toEqual(before);
    },
  );

  it('refuses a reading that is no number', async () => {
    await using store = new MemoryStore({ now: () => undefined as never });
    await expect(store.acquire(request)).rejects.toThrow(TypeError);
  });

  it('takes the latest reading for all answers, when its clock goes back', async () => {
    let seconds = 0;
    await using store = new MemoryStore({ now: () => seconds });
    await store.acquire(request);
    seconds = 8;
    await store.acquire({ ...request, runId: 'run-2' });
    seconds = 3;
    const other = { ...request, workerId: 'worker-b', acquisitionId: 'two' };
    expect(await store.acquire(other)).toMatchObject({ status: 'held', retryAfterSeconds: 2 });
    expect(await store.read('run-1')).toMatchObject({ state: 'held', remainingSeconds: 2 });
    seconds = 11;
    expect(await store.read('run-1')).toMatchObject({ state: 'expired' });
    seconds = 5;
    expect(await store.read('run-1')).toMatchObject({ state: 'expired', remainingSeconds: 0 });
    const held: string[] = [];
    for await (const { runId } of store.list({ state: 'held' })) held.push(runId);
    expect(held).toEqual(['run-2']);
    const lost = { ...request, fencingToken: 1 };
    expect(await store.renew([lost], 10)).toEqual([{ status: 'lost', reason: 'expired' }]);
    await store.revoke('run-2', { by: 'operator', reason: 'a test' });
    expect((await store.read('run-2'))?.revoked?.at).toBe(11);
    expect(await store.acquire(other)).toMatchObject({ status: 'granted', lease: { expiresAt: 21 } });
  });

  it('answers a call with its own answer, whatever an inspector sends to the registry meanwhile', async () => {
    const inspect = (event: InspectionEvent): void => {
      if (event.type !== '@xstate.snapshot' || event.event.type !== 'lease.acquire') return;
      event.actorRef.send({ type: 'lease.expire', now: 100 });
      event.actorRef.send({ type: 'lease.release', leaseId: 'run-1:worker-a:1', fencingToken: 1 });
    };
    await using store = new MemoryStore({ now: () => 0, inspect });
    expect(await store.acquire(request)).toMatchObject({ status: 'granted', lease: { fencingToken: 1 } });
    expect(await store.acquire({ ...request, workerId: 'worker-b' })).toMatchObject({ status: 'held' });
  });
});
