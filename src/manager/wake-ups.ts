/** What the store pushes of the runs that are waited for. Hints only: a lost one costs a poll. */
import type { LeaseStore } from '../stores/store.ts';
import type { OnStop } from './request.ts';

interface Watch {
  readonly controller: AbortController;
  /** The run may have changed since the waiter last asked. */
  woken: boolean;
  wake: (() => void) | undefined;
}

/** One subscription per run that is waited for, from its first wait to the end of its acquire. */
export class WakeUps {
  readonly #store: LeaseStore;
  readonly #watches = new Map<string, Watch>();

  constructor(store: LeaseStore) {
    this.#store = store;
  }

  /** Resolves with the next wake-up of the run, at once if it came since the last one. Without one it stays pending. */
  next(runId: string, onStop: OnStop): Promise<void> {
    const watch = this.#watches.get(runId) ?? this.#open(runId);
    return new Promise((resolve) => {
      watch.wake = () => {
        watch.wake = undefined;
        watch.woken = false;
        resolve();
      };
      onStop(() => (watch.wake = undefined));
      if (watch.woken) watch.wake();
    });
  }

  /** Ends the subscription. */
  forget(runId: string): void {
    this.#watches.get(runId)?.controller.abort();
    this.#watches.delete(runId);
  }

  #open(runId: string): Watch {
    const watch: Watch = { controller: new AbortController(), woken: false, wake: undefined };
    this.#watches.set(runId, watch);
    void this.#listen(runId, watch);
    return watch;
  }

  /** A store that cannot push, or stops doing so, leaves the polls. */
  async #listen(runId: string, watch: Watch): Promise<void> {
    const { signal } = watch.controller;
    try {
      for await (const _ of this.#store.changes?.([runId], { signal }) ?? []) {
        if (signal.aborted) return;
        watch.woken = true;
        watch.wake?.();
      }
    } catch {
      // The polls go on.
    }
  }
}
