/**
 * The rules of a lease, as plain functions. The statechart's guards, the stores and every read share them, so that
 * expiry and ownership are decided in one place. They never throw and never read a clock.
 */
import type { Reacquire } from '../src/lease.ts';

/** What the rules know of a lease. */
export interface ChartLease {
  readonly workerId: string;
  readonly leaseId: string;
  readonly fencingToken: number;
  readonly expiresAt: number;
  /** The random id of this acquisition, where leases carry one (stores), else undefined. */
  readonly acquisitionId: string | undefined;
}

/** What somebody shows to prove that a lease is theirs. */
export interface Claim {
  readonly leaseId: string;
  readonly fencingToken: number;
  readonly acquisitionId?: string | undefined;
}

/** Somebody asks for the run. `fencingToken` is that of the lease which a grant would make. */
export interface AcquireAsk {
  readonly workerId: string;
  readonly fencingToken: number;
  readonly acquisitionId?: string | undefined;
  readonly reacquire?: Reacquire | undefined;
  readonly now: number;
  readonly ttlSeconds: number;
}

/** The id of a lease, for people and logs. Compared whole and never parsed, since ids may hold colons. */
export function leaseIdOf(runId: string, workerId: string, fencingToken: number): string {
  return `${runId}:${workerId}:${fencingToken}`;
}

/** Expiry is inclusive: at `expiresAt` itself the lease has expired. */
export function isExpired(lease: Pick<ChartLease, 'expiresAt'>, now: number): boolean {
  return lease.expiresAt <= now;
}

/** The claim is that of the run's newest lease: id, token and, where leases carry one, acquisition. It may have expired. */
export function isCurrent(lease: ChartLease, claim: Claim): boolean {
  return (
    lease.fencingToken === claim.fencingToken &&
    lease.leaseId === claim.leaseId &&
    lease.acquisitionId === claim.acquisitionId
  );
}

/** Current and not expired: the only question that tells whether a worker may still act, at `now`. */
export function isLive(lease: ChartLease, claim: Claim, now: number): boolean {
  return isCurrent(lease, claim) && !isExpired(lease, now);
}

/** The live lease's own worker acquires again and asks to extend, or repeats the very acquire that made the lease. */
export function mayExtend(lease: ChartLease, ask: AcquireAsk): boolean {
  if (lease.workerId !== ask.workerId) return false;
  return ask.reacquire === 'extend' || (ask.acquisitionId !== undefined && ask.acquisitionId === lease.acquisitionId);
}

/** The lease that a successful acquire makes. */
export function grant(runId: string, ask: AcquireAsk): ChartLease {
  return {
    workerId: ask.workerId,
    leaseId: leaseIdOf(runId, ask.workerId, ask.fencingToken),
    fencingToken: ask.fencingToken,
    expiresAt: ask.now + ask.ttlSeconds,
    acquisitionId: ask.acquisitionId,
  };
}

/** The same lease with `ttlSeconds` from `now`, never less than it had. A re-acquire brings its own acquisition id. */
export function extend(
  lease: ChartLease,
  by: { readonly now: number; readonly ttlSeconds: number; readonly acquisitionId?: string | undefined },
): ChartLease {
  return {
    workerId: lease.workerId,
    leaseId: lease.leaseId,
    fencingToken: lease.fencingToken,
    expiresAt: Math.max(lease.expiresAt, by.now + by.ttlSeconds),
    acquisitionId: by.acquisitionId,
  };
}
