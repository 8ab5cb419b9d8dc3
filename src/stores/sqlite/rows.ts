/** Rows of the lease table, named as leases are, and what is made of them. */
import type { AcquireAsk } from '../../../machines/lease.rules.ts';
import { isExpired, leaseIdOf, mayExtend } from '../../../machines/lease.rules.ts';
import type { LeaseRef, LostReason, StoredLease } from '../../lease.ts';
import type { ShownLease } from '../lost-reason.ts';
import { lostReason } from '../lost-reason.ts';
import type { AcquireRequest, HeldResult, LeaseRecord } from '../store.ts';

/** What a query gives of one run's newest lease. */
export interface LeaseRow extends LeaseRef {
  /** Null once the lease was released. */
  readonly expiresAt: number | null;
  readonly ttlSeconds: number;
  readonly revokedAt: number | null;
}

/** What a query gives for people: all of the row, and the token of the run's fence row. */
export interface RecordRow extends LeaseRow {
  readonly acquiredAt: number;
  readonly revokedBy: string | null;
  readonly revokedReason: string | null;
  /** Null when nothing was written under a fence yet. */
  readonly fence: number | null;
}

/** A lease that has not been released. It may have expired. */
export type CurrentRow = LeaseRow & { readonly expiresAt: number };

export function isCurrentRow(row: LeaseRow | undefined): row is CurrentRow {
  return row !== undefined && row.expiresAt !== null;
}

export function isLiveRow(row: LeaseRow | undefined, now: number): row is CurrentRow {
  return isCurrentRow(row) && !isExpired(row, now);
}

/** How the acquire is refused, or undefined when it is not. */
export function refusalOf(
  { row, now }: { readonly row: LeaseRow | undefined; readonly now: number },
  request: AcquireRequest,
): HeldResult | undefined {
  if (!isLiveRow(row, now)) return undefined;
  const { workerId, fencingToken, expiresAt } = row;
  const leaseId = leaseIdOf(row.runId, workerId, fencingToken);
  const ask: AcquireAsk = { ...request, reacquire: request.reacquire ?? 'extend', fencingToken, now };
  if (mayExtend({ ...row, leaseId }, ask)) return undefined;
  return { status: 'held', workerId, fencingToken, retryAfterSeconds: secondsUntil(expiresAt, now) };
}

/** Why the lease is not the live one, given that it is not. */
export function reasonOf(lease: ShownLease & { readonly fencingToken: number }, row: LeaseRow | undefined): LostReason {
  return lostReason(lease, row && { ...row, released: row.expiresAt === null, revoked: row.revokedAt !== null });
}

/** The highest token ever issued for the run, by its lease row and its fence row. */
export function fenceOf(row: { readonly fencingToken: number | null; readonly fence: number | null }): number {
  return Math.max(row.fencingToken ?? 0, row.fence ?? 0);
}

export function leaseOf(lease: LeaseRef, expiresAt: number, ttlSeconds: number): StoredLease {
  const { runId, workerId, fencingToken, acquisitionId } = lease;
  const leaseId = leaseIdOf(runId, workerId, fencingToken);
  return { runId, workerId, leaseId, fencingToken, acquisitionId, expiresAt, ttlSeconds };
}

export function recordOf(row: RecordRow, now: number): LeaseRecord {
  const { runId, workerId, fencingToken, acquiredAt, expiresAt, ttlSeconds } = row;
  const { revokedBy: by, revokedReason: reason, revokedAt: at } = row;
  return {
    runId,
    state: expiresAt === null ? 'free' : isExpired({ expiresAt }, now) ? 'expired' : 'held',
    workerId,
    fencingToken,
    acquiredAt,
    expiresAt,
    remainingSeconds: expiresAt === null ? 0 : secondsUntil(expiresAt, now),
    ttlSeconds,
    fence: fenceOf(row),
    revoked: by !== null && reason !== null && at !== null ? { by, reason, at } : null,
  };
}

/** From `now` to then, never negative. Both have whole milliseconds, so the difference is given in whole ones too. */
function secondsUntil(then: number, now: number): number {
  return Math.max(0, Math.round((then - now) * 1000) / 1000);
}

/** When a lease ends that gets `ttlSeconds` now: in whole milliseconds, rounded up, so that none ends early. */
export function expiryAfter(now: number, ttlSeconds: number): number {
  const milliseconds = Math.ceil(ttlSeconds * 1000);
  const roundedUp = milliseconds / 1000 < ttlSeconds ? milliseconds + 1 : milliseconds;
  return (Math.round(now * 1000) + roundedUp) / 1000;
}
