import type { AcquireResult, LeaseStore } from '../stores/store.ts';
import { referenceOf } from './renewals.ts';

/** Asks that were given up before their answer. What one of them still gets, after its caller has gone, is released. */
export class LateGrants {
  readonly #store: LeaseStore;
  /** How many asks are open, by acquisition, and whether the caller has gone. */
  readonly #open = new Map<string, { asks: number; refused: boolean }>();

  constructor(store: LeaseStore) {
    this.#store = store;
  }

  /** While its caller goes on asking, a late grant is its own: every ask has the same acquisition id. */
  watch(acquisitionId: string, asking: Promise<AcquireResult>): void {
    const acquisition = this.#open.get(acquisitionId) ?? { asks: 0, refused: false };
    this.#open.set(acquisitionId, acquisition);
    acquisition.asks += 1;
    asking
      .then((result) => {
        if (acquisition.refused && result.status === 'granted') return this.#store.release(referenceOf(result.lease));
        return undefined;
      })
      // The ask failed, or its release did: at worst the run is free after the ttl.
      .catch(() => undefined)
      .finally(() => {
        acquisition.asks -= 1;
        if (acquisition.asks === 0) this.#open.delete(acquisitionId);
      });
  }

  /** The caller has gone. */
  refuse(acquisitionId: string): void {
    const acquisition = this.#open.get(acquisitionId);
    if (acquisition !== undefined) acquisition.refused = true;
  }
}
