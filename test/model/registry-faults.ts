/** Registries with one error each. The shipped table does the work, with one guard turned round, or hears another call. */
import type { LeaseContext } from '../../machines/lease.machine.ts';
import type { Row } from '../../machines/lease.table.ts';
import { rowFor } from '../../machines/lease.table.ts';
import type { Call } from './registry-calls.ts';
import type { RegistryState } from './registry-state.ts';
import { leaseIdFor } from './registry-state.ts';

type Guard = NonNullable<Row['guard']>;

const expired: LeaseContext = {
  runId: 'run-1',
  lease: { workerId: 'worker-a', leaseId: 'id', fencingToken: 1, expiresAt: 0, acquisitionId: undefined },
};
const ask = { workerId: 'worker-a', fencingToken: 2, now: 0, ttlSeconds: 1 };
const claim = { leaseId: 'id', fencingToken: 1, now: 0, ttlSeconds: 1 };

/** The shipped rows that ask whether a held lease has expired. */
const takeOver = rowFor('held', expired, { type: 'acquire', ...ask })!;
const lateHeartbeat = rowFor('held', expired, { type: 'heartbeat', ...claim })!;
const expiry = rowFor('held', expired, { type: 'expire', now: 0 })!;

/** At `expiresAt` itself the lease would still be live. Gives back how to mend the table. */
export function expireExclusively(): () => void {
  const guard: Guard = ({ lease }, event) => lease !== null && 'now' in event && lease.expiresAt < event.now;
  const mends = [takeOver, lateHeartbeat, expiry].map((row) => replaceGuard(row, guard));
  return () => mends.forEach((mend) => mend());
}

/** A heartbeat would revive a lease that has expired. Gives back how to mend the table. */
export function reviveByHeartbeat(): () => void {
  return replaceGuard(lateHeartbeat, () => false);
}

/** A worker's release would free its run whatever token it shows. */
export function releaseWithoutToken({ runs, issued }: RegistryState, call: Call): Call {
  if (call.kind !== 'release') return call;
  const lease = issued[call.claim.token - 1];
  const owned = lease && runs[lease.run];
  if (!lease || !owned || owned.worker !== lease.worker) return call;
  return { ...call, claim: { leaseId: leaseIdFor(owned.token, lease), token: owned.token } };
}

function replaceGuard(row: Row, guard: Guard): () => void {
  const { guard: shipped } = row;
  Object.assign(row, { guard });
  return () => void Object.assign(row, { guard: shipped });
}
