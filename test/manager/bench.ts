/** A manager on a virtual clock, over a memory store whose calls can go wrong. The store's clock is the same one. */
import { randomUUID } from 'node:crypto';
import { afterEach } from 'vitest';
import type { StoredLease } from '../../src/lease.ts';
import { LeaseManager } from '../../src/manager/lease-manager.ts';
import type { LeaseManagerOptions } from '../../src/manager/settings.ts';
import { ScriptedStore } from './scripted-store.ts';
import { VirtualClock } from './virtual-clock.ts';

/** What every test here counts with: renewals each 10 s, requests of 5 s, the deadline 29.685 s after sending. */
export const TTL = 30;
export const BELIEVED = 29.685;

export interface Bench {
  readonly clock: VirtualClock;
  readonly store: ScriptedStore;
  readonly leases: LeaseManager;
  /** What the manager told, in order: `granted`, `renewed`, `uncertain`, `lost`, `released`. */
  readonly news: string[];
  /** Another worker asks the store once, and gets the lease or null. */
  rival(runId?: string, workerId?: string): Promise<StoredLease | null>;
}

const unhandled: unknown[] = [];
const note = (error: unknown): void => {
  unhandled.push(error);
};
process.on('unhandledRejection', note);
process.on('uncaughtExceptionMonitor', note);

afterEach(() => {
  if (unhandled.length > 0) throw new AggregateError(unhandled.splice(0), 'Thrown from the background');
});

export function bench(options: LeaseManagerOptions = {}, { pushes = false } = {}): Bench {
  const clock = new VirtualClock();
  const store = new ScriptedStore(() => clock.monotonicSeconds(), { pushes });
  const leases = new LeaseManager(store, { ttlSeconds: TTL, workerId: 'worker-a', clock, ...options });
  const news: string[] = [];
  for (const type of ['granted', 'renewed', 'uncertain', 'lost', 'released'] as const) {
    leases.on(type, () => news.push(type));
  }
  const rival = async (runId = 'run-1', workerId = 'worker-b'): Promise<StoredLease | null> => {
    const acquisitionId = randomUUID();
    const answer = await store.inner.acquire({ runId, workerId, acquisitionId, ttlSeconds: TTL, reacquire: 'refuse' });
    return answer.status === 'granted' ? answer.lease : null;
  };
  return { clock, store, leases, news, rival };
}

/** A promise, and how to fulfil it. */
export function gate<Value = void>(): { readonly opened: Promise<Value>; readonly open: (value: Value) => void } {
  let open: (value: Value) => void = () => undefined;
  const opened = new Promise<Value>((resolve) => (open = resolve));
  return { opened, open };
}

/** How a promise ended, or `pending`. Asked without waiting for it. */
export function watched<Value>(promise: Promise<Value>): { value?: Value; error?: unknown; settled: boolean } {
  const state: { value?: Value; error?: unknown; settled: boolean } = { settled: false };
  promise.then(
    (value) => Object.assign(state, { value, settled: true }),
    (error: unknown) => Object.assign(state, { error, settled: true }),
  );
  return state;
}
