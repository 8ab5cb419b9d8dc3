/**
 * The contract of a store: where leases are kept for good, one atomic step per call.
 *
 * The store's clock decides expiry; callers send durations. Contention is a value. A rejection means that the store
 * failed: `StoreUnavailableError` when nothing was applied, `OutcomeUnknownError` when it may have been. A store never
 * logs, and a call of it takes effect at most once; `testLeaseStore` in `lessor/testing` holds any implementation to this.
 */
import type { LeaseRef, LostReason, Reacquire, RunState, StoredLease } from '../lease.ts';

/** @see the documentation of each member for who calls it, and when. */
export interface LeaseStore extends AsyncDisposable {
  /** What this store can lose, as read at opening. */
  readonly durability: Durability;

  /** Asks for the run. The manager calls it once per attempt, and again with the same `acquisitionId` when no answer came. */
  acquire(request: AcquireRequest, options?: CallOptions): Promise<AcquireResult>;

  /**
   * Extends live leases to `ttlSeconds` from now, never shortening one. One result per reference, in order; a refused
   * reference changes nothing for the others. All in one round trip.
   */
  renew(leases: readonly LeaseRef[], ttlSeconds: number, options?: CallOptions): Promise<readonly RenewResult[]>;

  /**
   * Frees the run, past expiry too, exactly when the lease is its current one. `false` means: not, or no longer, this one's.
   * Without `fencingToken` it takes back an acquire that was never answered.
   */
  release(lease: ReleaseRequest, options?: CallOptions): Promise<boolean>;

  /** An operator's release of whatever lease is current, kept in the run's record. Null when the run was free. */
  revoke(runId: string, why: RevokeReason, options?: CallOptions): Promise<RevokedLease | null>;

  /** The run's record by the store's clock, or null when it was never leased. It gives no right to write. */
  read(runId: string, options?: CallOptions): Promise<LeaseRecord | null>;

  /** Every run's record, in pages behind the scenes, ordered by `runId`. A run held throughout comes exactly once. */
  list(query?: ListQuery, options?: CallOptions): AsyncIterable<LeaseRecord>;

  /** The highest token ever issued for the run, 0 when it was never leased. */
  currentFence(runId: string, options?: CallOptions): Promise<number>;

  /**
   * Tells that one of the runs may have changed. A hint: some may be lost, and only the store's answer is a grant. Ends
   * with the signal. Left out where the store cannot push; callers poll as well.
   */
  changes?(runIds: readonly string[], options: { readonly signal: AbortSignal }): AsyncIterable<RunChange>;

  /** Ends what the store opened. Idempotent; every later call rejects. */
  close(): Promise<void>;
}

/** How one call may be given up. */
export interface CallOptions {
  /** Gives up waiting for the answer. The call then rejects: unknown outcome, unless it was never sent. */
  readonly signal?: AbortSignal | undefined;
}

/** What an acquire asks for. */
export interface AcquireRequest {
  readonly runId: string;
  readonly workerId: string;
  /** Random, drawn before asking, e.g. by `crypto.randomUUID()`. Repeating an unanswered acquire with it returns the same lease. */
  readonly acquisitionId: string;
  readonly ttlSeconds: number;
  /** What the live lease's own worker gets. @default 'extend' */
  readonly reacquire?: Reacquire | undefined;
}

/** Contention is a value: a rejection means that the store failed. */
export type AcquireResult = GrantedResult | HeldResult;

/** The run is the worker’s, until the lease expires, is released, revoked or, once expired, taken over. */
export interface GrantedResult {
  readonly status: 'granted';
  readonly lease: StoredLease;
  /** The worker's own live lease, extended: the token was kept. */
  readonly extended: boolean;
}

/** A live lease has the run. Nothing changed. */
export interface HeldResult {
  readonly status: 'held';
  readonly workerId: string;
  readonly fencingToken: number;
  /** Until the holder's expiry by the store's clock, unless it renews. A hint. */
  readonly retryAfterSeconds: number;
}

/** What became of one lease. Lost is final: nothing revives a lease. */
export type RenewResult =
  { readonly status: 'renewed'; readonly expiresAt: number } | { readonly status: 'lost'; readonly reason: LostReason };

/** The lease to release. Without its token it is known by its acquisition alone: an acquire that was never answered. */
export type ReleaseRequest = Omit<LeaseRef, 'fencingToken'> & { readonly fencingToken?: number | undefined };

/** Who takes a lease away, and why. Both are kept in the run’s record. */
export interface RevokeReason {
  /** Who revokes. */
  readonly by: string;
  readonly reason: string;
}

/** The lease that was taken away, without its `acquisitionId`: it gives no right to anything. */
export type RevokedLease = Omit<StoredLease, 'acquisitionId'>;

/** What a store knows of a run, by its own clock. No `acquisitionId`, so that reading gives no right to write. */
export interface LeaseRecord {
  readonly runId: string;
  /** `expired` is computed: the lease is current and its ttl has passed. */
  readonly state: RunState;
  /** Of the newest lease, kept after its release. */
  readonly workerId: string;
  readonly fencingToken: number;
  readonly acquiredAt: number;
  /** When the newest lease expires or expired, or null when it was released or revoked. */
  readonly expiresAt: number | null;
  /** Until `expiresAt` by the store's clock; 0 when not live. */
  readonly remainingSeconds: number;
  readonly ttlSeconds: number;
  /** The highest token ever issued for the run. */
  readonly fence: number;
  /** How the newest lease was revoked, or null. */
  readonly revoked: (RevokeReason & { readonly at: number }) | null;
}

/** Which runs to list: all conditions that are given hold. */
export interface ListQuery {
  readonly state?: RunState | undefined;
  readonly workerId?: string | undefined;
  /** Runs whose id starts with this, compared character by character. */
  readonly prefix?: string | undefined;
}

/** A run that may have changed. */
export interface RunChange {
  readonly runId: string;
}

/** What a store's server was found to keep, when it was opened. */
export interface Durability {
  /** What an acknowledged grant survives. Each level includes those before it. */
  readonly survives: 'nothing' | 'process-crash' | 'power-loss' | 'failover' | 'unknown';
  /** What can be lost and when, one sentence each, for people. */
  readonly warnings: readonly string[];
}
