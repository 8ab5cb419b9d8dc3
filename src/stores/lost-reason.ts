import type { LeaseRef, LostReason } from '../lease.ts';

/** What a store keeps of the newest lease of a run, as far as it tells why an older or other one is lost. */
export interface NewestLease {
  readonly workerId: string;
  readonly fencingToken: number;
  readonly acquisitionId: string;
  readonly released: boolean;
  readonly revoked: boolean;
}

/** Why the lease is not the run's live one, given that it is not. */
export function lostReason(lease: LeaseRef, newest: NewestLease | undefined): LostReason {
  if (newest === undefined || newest.fencingToken < lease.fencingToken) return 'unknown';
  if (newest.fencingToken > lease.fencingToken) return 'superseded';
  if (newest.workerId !== lease.workerId) return 'unknown';
  if (newest.acquisitionId !== lease.acquisitionId) return 'superseded';
  if (newest.revoked) return 'revoked';
  return newest.released ? 'released' : 'expired';
}
