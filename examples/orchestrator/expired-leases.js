/** Looks for leases that have expired, and tells the machine. Only the store knows: a silent worker may be dead or slow. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fromCallback } from 'xstate';

export function expiredLeases(store, { prefix, pollSeconds = 0.25 }) {
  return fromCallback(({ sendBack }) => {
    const controller = new AbortController();
    void watch(sendBack, controller.signal);
    return () => controller.abort();
  });

  async function watch(tell, signal) {
    while (!signal.aborted) {
      try {
        for await (const { runId, fencingToken } of store.list({ prefix, state: 'expired' }, { signal })) {
          if (!signal.aborted) tell({ type: 'lease.expired', jobId: runId, fencingToken });
        }
      } catch {
        // The store does not answer. What has expired is still so in the next round.
      }
      await sleep(pollSeconds * 1000, undefined, { signal }).catch(() => {});
    }
  }
}
