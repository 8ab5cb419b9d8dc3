/** What a keeper knows, hears, and is answered. Plain data: seconds on the worker's own clocks, no points in wall time. */
import type { Holder } from '../src/errors.ts';
import type { LostReason, Reacquire, StoredLease } from '../src/lease.ts';

/** A moment, or a deadline, on both clocks of the worker. */
export interface Moment {
  readonly monotonicSeconds: number;
  readonly bootSeconds: number;
}

/** The durations of one lease. All in seconds. */
export interface KeeperTimes {
  readonly ttlSeconds: number;
  /** A renewal is due so long after the last good request was sent, or up to a tenth of that earlier. */
  readonly renewSeconds: number;
  readonly requestTimeoutSeconds: number;
  /** The worker gives up so long before `ttlSeconds` are over. */
  readonly marginSeconds: number;
  /** The longest pause between two asks for a held run. */
  readonly pollSeconds: number;
  /** The end of all attempts to release. */
  readonly releaseTimeoutSeconds: number;
}

/** What a keeper is made for. */
export interface KeeperInput {
  readonly runId: string;
  readonly workerId: string;
  /** The same for every ask of this keeper, so that repeating one without an answer is no contention with oneself. */
  readonly acquisitionId: string;
  readonly reacquire: Reacquire | undefined;
  readonly times: KeeperTimes;
  readonly autoRenew: boolean;
  /** When the wait ends, on the monotonic clock; null: only the caller ends it. */
  readonly waitUntilSeconds: number | null;
}

/** What a keeper knows of its lease. */
export interface KeeperContext extends KeeperInput {
  /** So many times the store was asked for the run. */
  readonly attempts: number;
  /** An ask or a renewal is without a definite answer: the store may have granted or extended. */
  readonly unanswered: boolean;
  readonly holder: Holder | null;
  readonly lease: StoredLease | null;
  /** Until then, on both clocks, the worker may believe that it holds the run. Counted from the sending. */
  readonly deadline: Moment | null;
  /** So many renewals in a row failed. */
  readonly failures: number;
  /** What the store said last when it failed. */
  readonly error: unknown;
  /** With so many others at most the next renewal may share a request; null: with any number. */
  readonly company: number | null;
  readonly releaseAsked: boolean;
  readonly freed: boolean;
  readonly reason: LostReason | null;
}

/** What the keeper is told from outside. `expire` says that the deadline has passed, as the clock was seen to say. */
export type KeeperEvent =
  { readonly type: 'cancel' } | { readonly type: 'renew' } | { readonly type: 'expire' } | { readonly type: 'release' };

/** What the keeper tells. Each granted lease is told exactly one end, `lost` or `released`. */
export type KeeperNews =
  | { readonly type: 'granted' }
  | { readonly type: 'renewed' }
  | { readonly type: 'uncertain' }
  | { readonly type: 'lost' }
  | { readonly type: 'released' }
  | { readonly type: 'refused' }
  | { readonly type: 'failed' };

/** The answer to one ask for the run. `waitOver`: no further ask may follow. */
export type AskAnswer =
  | { readonly status: 'granted'; readonly lease: StoredLease; readonly deadline: Moment }
  | { readonly status: 'held'; readonly holder: Holder; readonly waitOver: boolean }
  | {
      readonly status: 'failed';
      readonly error: unknown;
      /** The ask may have been granted all the same. */
      readonly unknown: boolean;
      readonly waitOver: boolean;
    };

/** `late`: the deadline had passed, so nothing was sent, or the answer came too late to count. */
export type RenewAnswer =
  | { readonly status: 'renewed'; readonly deadline: Moment }
  | { readonly status: 'lost'; readonly reason: LostReason }
  | { readonly status: 'late' }
  | {
      readonly status: 'failed';
      readonly error: unknown;
      /** The renewal may have taken effect. */
      readonly unknown: boolean;
      /** So many leases shared the request. */
      readonly shared: number;
    };

/** `freed`: the run was given back. An error: the store could not be asked in time, and the run is free after the ttl. */
export interface ReleaseAnswer {
  readonly freed: boolean;
  readonly error?: unknown;
}
