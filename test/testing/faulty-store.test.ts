import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { OutcomeUnknownError, StoreUnavailableError } from '../../src/errors.ts';
import { MemoryStore } from '../../src/stores/memory.ts';
import type { AcquireRequest, GrantedResult } from '../../src/stores/store.ts';
import { FaultyStore } from '../../src/testing/faulty-store.ts';
import { runKit } from './collector.ts';

const request: AcquireRequest = { runId: 'run-1', workerId: 'worker-a', acquisitionId: 'x', ttlSeconds: 10 };

describe('a faulty store', () => {
  it('without misfortunes is the store that it wraps: it passes the kit', async () => {
    let now = 0;
    const report = await runKit({
      name: 'a faulty store',
      create: async () => new FaultyStore(new MemoryStore({ now: () => now })),
      ttlSeconds: 10,
      advance: async (seconds) => void (now += seconds),
      takeOverRounds: 100,
    });
    expect([...report.failed]).toEqual([]);
  });

  it('B11 an acquire whose answer was lost had its effect, and its repeat returns that same lease', async () => {
    const { store, inner } = stores();
    store.meet('acquire', { answer: 'lost' });
    await expect(store.acquire(request)).rejects.toThrow(OutcomeUnknownError);
    const { fencingToken } = (await inner.read('run-1'))!;
    const again = (await store.acquire(request)) as GrantedResult;
    expect(again.lease.fencingToken).toBe(fencingToken);
    expect(store.calls('acquire')).toBe(2);
  });

  it('AQ1. An acquire whose reply got lost is not contention with oneself: giving up frees the run at once', async () => {
    const { store } = stores();
    store.meet('acquire', { answer: 'lost' });
    await expect(store.acquire(request)).rejects.toThrow(OutcomeUnknownError);
    const { runId, workerId, acquisitionId } = request;
    expect(await store.release({ runId, workerId, acquisitionId })).toBe(true);
    expect((await store.acquire({ ...request, workerId: 'worker-b' })).status).toBe('granted');
  });

  it('B11 a request that was lost had no effect, though its caller cannot know', async () => {
    const { store, inner } = stores();
    store.meet('acquire', { request: 'lost' });
    await expect(store.acquire(request)).rejects.toThrow(OutcomeUnknownError);
    expect(await inner.read('run-1')).toBeNull();
  });

  it('RL3. Releasing again after a lost reply is harmless', async () => {
    const { store } = stores();
    const { lease } = (await store.acquire(request)) as GrantedResult;
    store.meet('release', { answer: 'lost' });
    await expect(store.release(lease)).rejects.toThrow(OutcomeUnknownError);
    expect(await store.release(lease)).toBe(false);
  });

  it('refuses while the server cannot be reached, until that is over', async () => {
    const { store, inner } = stores();
    store.meetAlways('acquire', { request: 'refused' });
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await expect(store.acquire(request)).rejects.toThrow(StoreUnavailableError);
    }
    expect(await inner.read('run-1')).toBeNull();
    store.meetAlways('acquire', null);
    expect((await store.acquire(request)).status).toBe('granted');
  });

  it('is silent until the signal aborts', async () => {
    const { store } = stores();
    const { lease } = (await store.acquire(request)) as GrantedResult;
    store.meet('renew', { answer: 'lost', silent: true });
    const abort = new AbortController();
    const renewal = store.renew([lease], 10, { signal: abort.signal });
    expect(await Promise.race([renewal, Promise.resolve('silence')])).toBe('silence');
    abort.abort(new Error('enough'));
    await expect(renewal).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', cause: { message: 'enough' } });
  });

  it('leaves no listener on a signal once the answer came', async () => {
    const { store } = stores();
    const { signal } = new AbortController();
    store.meet('acquire', { answer: Promise.resolve() });
    await store.acquire(request, { signal });
    await expect.poll(() => getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('RL2. A release that was delayed on its way does not free a later acquisition of the same worker', async () => {
    const { store } = stores();
    const { lease } = (await store.acquire(request)) as GrantedResult;
    const { promise, arrive } = gate();
    store.meet('release', { request: promise });
    const delayed = store.release(lease);
    const again = (await store.acquire({ ...request, acquisitionId: 'y' })) as GrantedResult;
    expect(again.lease.fencingToken).toBe(lease.fencingToken);
    arrive();
    expect(await delayed).toBe(false);
    expect((await store.acquire({ ...request, workerId: 'worker-b' })).status).toBe('held');
  });

  it('lets a late request take its effect after its caller has given up', async () => {
    const { store, inner } = stores();
    const { promise, arrive } = gate();
    const abort = new AbortController();
    store.meet('acquire', { request: promise });
    const late = store.acquire(request, { signal: abort.signal });
    abort.abort();
    await expect(late).rejects.toThrow(OutcomeUnknownError);
    expect(await inner.read('run-1')).toBeNull();
    arrive();
    await expect.poll(async () => (await inner.read('run-1'))?.state).toBe('held');
  });

  it('holds an answer back until it is let go', async () => {
    const { store, inner } = stores();
    const { promise, arrive } = gate();
    store.meet('acquire', { answer: promise });
    const late = store.acquire(request);
    await expect.poll(async () => (await inner.read('run-1'))?.state).toBe('held');
    expect(await Promise.race([late, Promise.resolve('not yet')])).toBe('not yet');
    arrive();
    expect((await late).status).toBe('granted');
  });

  it('plans for one call after another', async () => {
    const { store } = stores();
    store.meet('read', { request: 'refused' });
    store.meet('read', { answer: 'lost' });
    await expect(store.read('run-1')).rejects.toThrow(StoreUnavailableError);
    await expect(store.read('run-1')).rejects.toThrow(OutcomeUnknownError);
    expect(await store.read('run-1')).toBeNull();
  });
});

function stores(): { store: FaultyStore; inner: MemoryStore } {
  const inner = new MemoryStore();
  return { store: new FaultyStore(inner), inner };
}

function gate(): { promise: Promise<void>; arrive: () => void } {
  let arrive = () => {};
  const promise = new Promise<void>((resolve) => (arrive = resolve));
  return { promise, arrive };
}
