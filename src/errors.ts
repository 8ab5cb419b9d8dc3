import type { LeaseRef, LostReason } from './lease.ts';

/** What a program decides by. The message is for people. */
export type LeaseErrorCode =
  | 'LEASE_LOST'
  | 'LEASE_NOT_AVAILABLE'
  | 'CONFLICT'
  | 'STORE_UNAVAILABLE'
  | 'OUTCOME_UNKNOWN'
  | 'STATE_LOST'
  | 'UNFENCED_RUN';

const BRAND = Symbol.for('lessor.LeaseError');

/** The base of every error that a lease or a store gives. A mistake in the call itself is a TypeError or a RangeError. */
export abstract class LeaseError extends Error {
  abstract readonly code: LeaseErrorCode;
  /** Whether the same call may succeed later, unchanged. */
  abstract readonly retryable: boolean;
  /** @internal Known to every copy of this package. */
  readonly [BRAND] = true;

  override get name(): string {
    return this.constructor.name;
  }
}

/** Whether the value is an error of this package, also of another copy of it. Then `code` tells which. */
export function isLeaseError(value: unknown): value is LeaseError {
  return typeof value === 'object' && value !== null && (value as { [BRAND]?: unknown })[BRAND] === true;
}

/** What is known of a loss beside its reason. */
export interface LeaseLostOptions extends ErrorOptions {
  /** What the work returned although its lease was lost. */
  readonly result?: unknown;
  /** What the work threw after its lease was lost. */
  readonly workError?: unknown;
  /** How long before the loss the last good request was sent. */
  readonly sinceRenewalSeconds?: number | undefined;
}

/** The lease is no longer its worker's. Stop, acquire again, read again, redo: the same call can never succeed. */
export class LeaseLostError extends LeaseError {
  override readonly code = 'LEASE_LOST';
  override readonly retryable = false;
  readonly runId: string;
  readonly workerId: string;
  readonly fencingToken: number;
  readonly reason: LostReason;
  /** What the work returned although its lease was lost, where there was work. */
  readonly result: unknown;
  /** What the work threw after its lease was lost, where there was work. */
  readonly workError: unknown;
  /** How long before the loss the last good request was sent, where the lease was held by a manager. */
  readonly sinceRenewalSeconds: number | undefined;

  constructor(lease: Omit<LeaseRef, 'acquisitionId'>, reason: LostReason, options: LeaseLostOptions = {}) {
    super(`Lost the lease on run ${quote(lease.runId)} (token ${lease.fencingToken}): ${reason}`, options);
    this.runId = lease.runId;
    this.workerId = lease.workerId;
    this.fencingToken = lease.fencingToken;
    this.reason = reason;
    this.result = options.result;
    this.workError = options.workError;
    this.sinceRenewalSeconds = options.sinceRenewalSeconds;
  }
}

/** Who has the run, as far as the refusal knows. */
export interface Holder {
  readonly workerId: string;
  /** 0 while this manager still asks for the run. */
  readonly fencingToken: number;
  readonly retryAfterSeconds: number;
}

/** The run is held, by another worker or by another hold of this manager. Wait, do not force. */
export class LeaseNotAvailableError extends LeaseError {
  override readonly code = 'LEASE_NOT_AVAILABLE';
  override readonly retryable = true;
  readonly runId: string;
  /** The worker that has the run. */
  readonly holder: Holder;
  /** So many times the store was asked. */
  readonly attempts: number;

  constructor(runId: string, holder: Holder, attempts: number, why = '', options?: ErrorOptions) {
    const { workerId, fencingToken } = holder;
    const held = fencingToken > 0 ? `held by worker ${quote(workerId)} (token ${fencingToken})` : 'not available';
    super(`Run ${quote(runId)} is ${held}${why && `: ${why}`}`, options);
    this.runId = runId;
    this.holder = holder;
    this.attempts = attempts;
  }
}

/** What was read has changed meanwhile, and nothing was written. Read again and retry. */
export class ConflictError extends LeaseError {
  override readonly code = 'CONFLICT';
  override readonly retryable = true;
}

/** The store could not be asked, and nothing was applied. `cause` is what the client said. */
export class StoreUnavailableError extends LeaseError {
  override readonly code = 'STORE_UNAVAILABLE';
  override readonly retryable = true;
}

/** The store may have applied the call or not: no answer came. Of a write: read again before deciding. */
export class OutcomeUnknownError extends LeaseError {
  override readonly code = 'OUTCOME_UNKNOWN';
  override readonly retryable = true;
}

/** The store has forgotten leases that it had acknowledged. It refuses until it is opened anew. */
export class StateLostError extends LeaseError {
  override readonly code = 'STATE_LOST';
  override readonly retryable = false;
}

/** A write without a fence on a run that was leased: refused, unless the caller says that it means it (`fence: 'none'`). */
export class UnfencedRunError extends LeaseError {
  override readonly code = 'UNFENCED_RUN';
  override readonly retryable = false;
  readonly runId: string;

  constructor(runId: string, options?: ErrorOptions) {
    super(
      `Run ${quote(runId)} is leased to workers: give the session its lease as \`fence\`, or \`fence: 'none'\``,
      options,
    );
    this.runId = runId;
  }
}

function quote(name: string): string {
  return JSON.stringify(name);
}
