import type { LeaseRef, LostReason } from '../lease.ts';

/** The newest lease of a run as a store keeps it, also after its end. */
export interface NewestLease extends LeaseRef {
  readonly released: boolean;
  readonly revoked: boolean;
}

/** What a caller shows of its lease. What it does not know is not compared. */
export interface ShownLease extends Pick<LeaseRef, 'runId' | 'workerId'> {
  readonly fencingToken?: number | undefined;
  readonly acquisitionId?: string | undefined;
}

/** Whether it is this very lease. Field by field: joined names could be equal for two different runs. */
export function names(shown: ShownLease, lease: LeaseRef): boolean {
  return (
    shown.runId === lease.runId &&
    shown.workerId === lease.workerId &&
    (shown.fencingToken ?? lease.fencingToken) === lease.fencingToken &&
    (shown.acquisitionId ?? lease.acquisitionId) === lease.acquisitionId
  );
}

/** Why the lease is not the run's live one, given that it is not. */
export function lostReason(
  lease: ShownLease & { readonly fencingToken: number },
  newest: NewestLease | undefined,
): LostReason {
  if (newest === undefined || newest.fencingToken < lease.fencingToken) return 'unknown';
  if (newest.fencingToken > lease.fencingToken) return 'superseded';
  if (newest.workerId !== lease.workerId) return 'unknown';
  if (!names(lease, newest)) return 'superseded';
  if (newest.revoked) return 'revoked';
  return newest.released ? 'released' : 'expired';
}
