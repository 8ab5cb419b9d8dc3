import type { Clock } from '../clock.ts';
import { isLeaseError, LeaseLostError, StoreUnavailableError } from '../errors.ts';
import type { LeaseRef } from '../lease.ts';
import { checkFencingToken, checkName, checkObject } from '../options.ts';
import type { LeaseRecord, LeaseStore } from '../stores/store.ts';
import { request } from './request.ts';

/** What a guard compares: a lease, a `HeldLease` or a reference to one. */
export type GuardedLease = Pick<LeaseRef, 'runId' | 'workerId' | 'fencingToken'>;

export function checkGuarded(lease: GuardedLease): void {
  checkObject('lease', lease);
  checkName('lease.runId', lease.runId);
  checkName('lease.workerId', lease.workerId);
  checkFencingToken('lease.fencingToken', lease.fencingToken);
}

/** Asks the store, and rejects when the lease is not its run's newest any more, or was given back or revoked. */
export async function guard(
  store: LeaseStore,
  clock: Clock,
  lease: GuardedLease,
  timeoutSeconds: number,
): Promise<void> {
  const record = await read(store, clock, lease.runId, timeoutSeconds);
  if (record === null) throw new LeaseLostError(lease, 'unknown');
  if (record.fencingToken !== lease.fencingToken || record.workerId !== lease.workerId) {
    throw new LeaseLostError(lease, record.fencingToken > lease.fencingToken ? 'superseded' : 'unknown');
  }
  if (record.state === 'free') throw new LeaseLostError(lease, record.revoked === null ? 'released' : 'revoked');
}

/** Reading applies nothing, so a read without an answer is an unavailable store. */
async function read(
  store: LeaseStore,
  clock: Clock,
  runId: string,
  timeoutSeconds: number,
): Promise<LeaseRecord | null> {
  try {
    return await request((signal) => store.read(runId, { signal }), { clock, timeoutSeconds });
  } catch (error) {
    if (isLeaseError(error) && error.code !== 'OUTCOME_UNKNOWN') throw error;
    throw new StoreUnavailableError('The store could not be read', { cause: error });
  }
}
