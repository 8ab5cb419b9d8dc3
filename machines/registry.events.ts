/** What a registry actor is asked, what it answers, and what of it outlives the process. */
import type { Lease, Reacquire } from '../src/lease.ts';

interface Call {
  /** Who gets the answer as an event, once the registry has taken its step. */
  readonly replyTo?: { send(answer: RegistryAnswer): void } | undefined;
}

interface TimedCall extends Call {
  /** Seconds on the caller's clock: the registry reads none. One that goes back counts as the latest seen. */
  readonly now: number;
}

interface ClaimCall {
  readonly leaseId: string;
  readonly fencingToken: number;
  readonly acquisitionId?: string | undefined;
}

export interface AcquireCall extends TimedCall {
  readonly type: 'lease.acquire';
  readonly runId: string;
  readonly workerId: string;
  readonly acquisitionId?: string | undefined;
  /** @default the registry's */
  readonly reacquire?: Reacquire | undefined;
  /** @default the registry's */
  readonly ttlSeconds?: number | undefined;
}

export interface HeartbeatCall extends TimedCall, ClaimCall {
  readonly type: 'lease.heartbeat';
  /** @default the registry's */
  readonly ttlSeconds?: number | undefined;
}

export interface ValidateCall extends TimedCall, ClaimCall {
  readonly type: 'lease.validate';
  readonly runId: string;
}

export interface ReleaseCall extends Call, ClaimCall {
  readonly type: 'lease.release';
}

export interface ExpireCall extends TimedCall {
  readonly type: 'lease.expire';
}

/** A call of the registry, as an event. */
export type RegistryEvent = AcquireCall | HeartbeatCall | ValidateCall | ReleaseCall | ExpireCall;

/** A new lease, or the worker's own live one extended. `previous` is the expired lease that it took over from. */
export interface Granted {
  readonly type: 'lease.granted';
  readonly lease: Lease;
  readonly extended: boolean;
  readonly previous: Lease | null;
}

/** The run is held, by `lease`. */
export interface Refused {
  readonly type: 'lease.refused';
  readonly runId: string;
  readonly workerId: string;
  readonly lease: Lease;
}

/** Token `2^53 - 1` was given out: this registry grants nothing any more. */
export interface Exhausted {
  readonly type: 'lease.exhausted';
  readonly runId: string;
  readonly workerId: string;
}

export interface Renewed {
  readonly type: 'lease.renewed';
  readonly lease: Lease;
}

/** The claim is that of a live lease. */
export interface Valid {
  readonly type: 'lease.valid';
  readonly leaseId: string;
  readonly fencingToken: number;
}

/** The claim is not that of a live lease (heartbeat, validate), or not of a current one (release). */
export interface Invalid {
  readonly type: 'lease.invalid';
  readonly leaseId: string;
  readonly fencingToken: number;
  /** The run's lease, where this very call made the chart notice that it had expired. */
  readonly expired: Lease | null;
}

export interface Released {
  readonly type: 'lease.released';
  readonly lease: Lease;
}

/** The leases that lapsed and that no earlier answer of this kind named. `expired` are those that the chart notices only now. */
export interface Lapsed {
  readonly type: 'lease.lapsed';
  readonly leases: readonly Lease[];
  readonly expired: readonly Lease[];
}

/** The call itself made no sense: a TypeError or RangeError that names what is wrong. Nothing changed. */
export interface Rejected {
  readonly type: 'lease.rejected';
  readonly error: Error;
}

/** What a call was answered. */
export type RegistryAnswer = Granted | Refused | Exhausted | Renewed | Valid | Invalid | Released | Lapsed | Rejected;

/** A registry as plain JSON. */
export interface RegistryRecord {
  readonly version: 1;
  readonly ttlSeconds: number;
  readonly reacquire: Reacquire;
  readonly nextToken: number;
  /** The latest `now` that was seen, or null when none was. */
  readonly latestNow: number | null;
  readonly leases: readonly LeaseEntry[];
}

/** A current lease of the record, with what the record must keep beside it. */
export interface LeaseEntry extends Readonly<Lease> {
  readonly acquisitionId?: string | undefined;
  readonly ttlSeconds: number;
  readonly state: 'held' | 'expired';
  /** Already named by `expire`. */
  readonly reported: boolean;
}
