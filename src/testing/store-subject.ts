import type { LeaseRef, StoredLease } from '../lease.ts';
import type { LeaseStore } from '../stores/store.ts';
import type { Observation, Subject, SubjectAsk, SubjectClaim } from './play.ts';

export interface StoreSubjectOptions {
  readonly store: LeaseStore;
  /** A run of its own, never leased before. */
  readonly runId: string;
  readonly ttlSeconds: number;
  readonly advance: (seconds: number) => Promise<void>;
  /** The store's clock runs by itself. */
  readonly timePasses: boolean;
}

/** One run of a store, as scenarios play on it. */
export class StoreSubject implements Subject {
  readonly timePasses: boolean;
  readonly #options: StoreSubjectOptions;

  constructor(options: StoreSubjectOptions) {
    this.#options = options;
    this.timePasses = options.timePasses;
  }

  async acquire({ workerId, acquisitionId, reacquire }: SubjectAsk): Promise<StoredLease | null> {
    const { store, runId, ttlSeconds } = this.#options;
    const request = { runId, workerId, acquisitionId: acquisitionId!, ttlSeconds, reacquire };
    const result = await store.acquire(request);
    return result.status === 'granted' ? result.lease : null;
  }

  async heartbeat(claim: SubjectClaim): Promise<boolean> {
    const { store, ttlSeconds } = this.#options;
    const [result] = await store.renew([this.#ref(claim)], ttlSeconds);
    return result?.status === 'renewed';
  }

  async release(claim: SubjectClaim): Promise<boolean> {
    return this.#options.store.release(this.#ref(claim));
  }

  async advance(ttls: number): Promise<void> {
    await this.#options.advance(ttls * this.#options.ttlSeconds);
  }

  async observe(): Promise<Observation> {
    const { store, runId, ttlSeconds } = this.#options;
    const [record, fence] = [await store.read(runId), await store.currentFence(runId)];
    if (record === null || record.state === 'free') {
      return { state: 'free', workerId: null, fencingToken: null, ttlsLeft: 0, fence };
    }
    const { state, workerId, fencingToken, remainingSeconds } = record;
    return { state, workerId, fencingToken, ttlsLeft: remainingSeconds / ttlSeconds, fence };
  }

  #ref({ workerId, fencingToken, acquisitionId }: SubjectClaim): LeaseRef {
    return { runId: this.#options.runId, workerId, fencingToken, acquisitionId: acquisitionId! };
  }
}
