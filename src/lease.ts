/**
 * The words of this project, one for one idea, in code, documents, errors, columns and commands alike.
 *
 * - run: what is owned, a job, a queue item, a schedule. At most one lease per run is live.
 * - worker: who owns it.
 * - lease: one unbroken ownership of one run by one worker.
 * - fencing token: the number of a lease. Every newer one of the same run is higher, for ever.
 * - acquisition id: a random id of one successful acquire at a store. Of two handles with one worker id only the newer works.
 * - current: the lease is the newest of its run and was not released. It may have expired.
 * - live: current, and `expiresAt > now`. Expiry is inclusive.
 * - fence: the highest token ever issued for a run.
 * - take over: a new lease on a run whose lease expired.
 *
 * All times and durations are seconds, fractions allowed.
 */

/** One unbroken ownership of one run by one worker, as plain data: a snapshot that changes nothing and is changed by nothing. */
export interface Lease {
  /** What is owned. */
  runId: string;
  /** Who owns it. */
  workerId: string;
  /** `"{runId}:{workerId}:{fencingToken}"`. Compared whole, never parsed, since ids may hold colons. */
  leaseId: string;
  /** Positive safe integer. A number and no bigint, so that it survives JSON, environment variables and inspectors. */
  fencingToken: number;
  /** The first moment, in seconds, at which the lease is no longer live. By the clock of whoever granted it. */
  expiresAt: number;
}

/** What names one lease at a store: plain data, without authority or timers, safe in JSON. All four are compared. */
export interface LeaseRef {
  readonly runId: string;
  readonly workerId: string;
  readonly fencingToken: number;
  /** The random id that the caller drew before it asked for the lease. */
  readonly acquisitionId: string;
}

/** A lease as a store grants it. `expiresAt` is on the store's clock and for display: a worker counts its own deadline. */
export interface StoredLease extends Readonly<Lease>, LeaseRef {
  readonly runId: string;
  readonly workerId: string;
  readonly fencingToken: number;
  /** How long the lease lives without a renewal, in seconds. */
  readonly ttlSeconds: number;
}

/** Where a run is in its statechart. Never the question whether a lease is live: that one needs the time. */
export type RunState = 'free' | 'held' | 'expired';

/** Whether the live lease's own worker may acquire again: `extend` keeps its token, `refuse` answers that the run is held. */
export type Reacquire = 'extend' | 'refuse';

/** Why a lease is no longer its worker's. */
export type LostReason = 'expired' | 'superseded' | 'released' | 'revoked' | 'unknown';
