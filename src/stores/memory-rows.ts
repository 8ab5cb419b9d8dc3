import { isExpired } from '../../machines/lease.rules.ts';
import type { StoredLease } from '../lease.ts';
import type { LeaseRecord } from './store.ts';

/** What stays of a run's newest lease, also after its release, as a database keeps its row. */
export interface MemoryRow {
  lease: StoredLease;
  readonly acquiredAt: number;
  released: boolean;
  revoked: LeaseRecord['revoked'];
}

export function recordOf({ lease, acquiredAt, released, revoked }: MemoryRow, now: number): LeaseRecord {
  const { runId, workerId, fencingToken, expiresAt, ttlSeconds } = lease;
  const expired = isExpired(lease, now);
  return {
    runId,
    state: released ? 'free' : expired ? 'expired' : 'held',
    workerId,
    fencingToken,
    acquiredAt,
    expiresAt: released ? null : expiresAt,
    remainingSeconds: released || expired ? 0 : expiresAt - now,
    ttlSeconds,
    fence: fencingToken,
    revoked: revoked && { ...revoked },
  };
}

/** The order of the databases: by the bytes of UTF-8. JavaScript's own differs beyond U+FFFF. */
export function byBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
