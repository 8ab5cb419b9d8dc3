/** Stores with one error each, as the clients of a run use them. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FencedStore } from '../../src/session/fenced-store.ts';
import { MemoryStore } from '../../src/stores/memory.ts';
import type { Fault } from '../testing/planted-faults.ts';
import { WrongStore } from '../testing/wrong-stores.ts';
import type { Asked } from './clients.ts';

/** Errors of the fence, each of which lets a write through that should not be. */
export const FENCE_ERRORS: Readonly<Record<string, (store: FencedStore) => Partial<Asked>>> = {
  'no fence': (store) => ({
    openDocuments: (request) => store.openDocuments({ ...request, fences: [], allowUnfenced: true }),
    commitDocuments: (request) => store.commitDocuments({ ...request, fences: [], allowUnfenced: true }),
  }),
  'a fence that compares no acquisition': (store) => ({
    commitDocuments: ({ fences, ...request }) =>
      store.commitDocuments({ ...request, fences: fences.map((fence) => ({ ...fence, acquisitionId: undefined })) }),
  }),
  'a check that comes some time before the write': (store) => ({
    commitDocuments: async (request) => {
      await store.openDocuments(request);
      await sleep(10);
      await store.commitDocuments({ ...request, fences: [], allowUnfenced: true });
    },
  }),
  'lost updates': (store) => ({
    commitDocuments: (request) => store.commitDocuments({ ...request, expected: [] }),
  }),
};

export function wrongFence(error: string): Asked {
  const store = new MemoryStore();
  const right: Asked = {
    ...callsOf(store),
    openDocuments: (request) => store.openDocuments(request),
    commitDocuments: (request) => store.commitDocuments(request),
  };
  return { ...right, ...FENCE_ERRORS[error]?.(store) };
}

/** The kit's wrong store, which keeps no documents. */
export function wrongLeases(fault: Fault): Asked {
  const store = new WrongStore(fault, () => (performance.timeOrigin + performance.now()) / 1000);
  const none = (): Promise<never> => Promise.reject(new TypeError('This store keeps no documents'));
  return { ...callsOf(store), openDocuments: none, commitDocuments: none };
}

function callsOf(store: MemoryStore | WrongStore): Omit<Asked, 'openDocuments' | 'commitDocuments'> {
  return {
    acquire: (request) => store.acquire(request),
    renew: (leases, ttlSeconds) => store.renew(leases, ttlSeconds),
    release: (lease) => store.release(lease),
    revoke: (runId, why) => store.revoke(runId, why),
    read: (runId) => store.read(runId),
    currentFence: (runId) => store.currentFence(runId),
  };
}
