/** A way to a store of this process that is as bad as one to a server: late, given up, lost in one direction or the other. */
import { setTimeout as sleep } from 'node:timers/promises';
import { OutcomeUnknownError } from '../../src/errors.ts';
import { randomOf } from '../support/random.ts';
import type { Asked } from './clients.ts';

/** @param losses - the share of calls whose request or answer is lost, or comes after the caller has given up. */
export function distant(store: Asked, seed: number, losses: number): Asked {
  const random = randomOf(seed);
  const wait = async (most: number): Promise<void> => {
    const time = random() ** 2 * most;
    if (time < 1) await new Promise(setImmediate);
    else await sleep(time);
  };
  const send = async <Result>(effect: () => Promise<Result>): Promise<Result> => {
    await wait(4);
    const fate = random() / losses;
    if (fate >= 1) {
      const result = await effect();
      await wait(4);
      return result;
    }
    if (fate < 0.4) await effect().catch(() => undefined);
    // It arrives some time later, when nobody waits for it any more.
    else if (fate < 0.7)
      void wait(200)
        .then(effect)
        .catch(() => undefined);
    throw new OutcomeUnknownError('No answer came');
  };
  return {
    acquire: (request) => send(() => store.acquire(request)),
    renew: (leases, ttlSeconds) => send(() => store.renew(leases, ttlSeconds)),
    release: (lease) => send(() => store.release(lease)),
    revoke: (runId, why) => send(() => store.revoke(runId, why)),
    read: (runId) => send(() => store.read(runId)),
    currentFence: (runId) => send(() => store.currentFence(runId)),
    openDocuments: (request) => send(() => store.openDocuments(request)),
    commitDocuments: (request) => send(() => store.commitDocuments(request)),
  };
}
