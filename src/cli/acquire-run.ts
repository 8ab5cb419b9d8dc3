/** How `lessor run` gets its run: at once, or after telling who has it. */
import { LeaseNotAvailableError } from '../errors.ts';
import type { HeldLease } from '../manager/held-lease.ts';
import type { LeaseManager } from '../manager/lease-manager.ts';
import type { RunInvocation } from './arguments.ts';
import { duration, printable, say } from './terminal.ts';

/** Null when another worker still has the run after the wait. */
export async function acquireRun(
  leases: LeaseManager,
  { runId, workerId, waitSeconds }: RunInvocation,
  signal: AbortSignal,
): Promise<HeldLease | null> {
  // A second command under the same worker name is a second command: it must not extend the first one's lease.
  const options = { workerId, reacquire: 'refuse', signal } as const;
  const refused = await refusalOf(leases.acquire(runId, { ...options, waitSeconds: 0 }));
  if (!(refused instanceof LeaseNotAvailableError)) return refused;
  const waiting =
    waitSeconds === 0 ? '' : `; waiting${waitSeconds === Infinity ? '' : ` up to ${duration(waitSeconds)}`}`;
  const { holder } = refused;
  say(
    `run ${printable(runId)} is held by worker ${printable(holder.workerId)} (token ${holder.fencingToken}), ` +
      `for ${duration(holder.retryAfterSeconds)} unless renewed${waiting}`,
  );
  if (waitSeconds === 0) return null;
  const start = performance.now();
  const lease = await refusalOf(leases.acquire(runId, { ...options, waitSeconds }));
  const waited = duration((performance.now() - start) / 1000);
  if (lease instanceof LeaseNotAvailableError) {
    say(`run ${printable(runId)} is still held by worker ${printable(lease.holder.workerId)} after ${waited}`);
    return null;
  }
  say(`got run ${printable(runId)} after ${waited} (token ${lease.fencingToken})`);
  return lease;
}

/** Contention as a value. */
async function refusalOf(acquiring: Promise<HeldLease>): Promise<HeldLease | LeaseNotAvailableError> {
  try {
    return await acquiring;
  } catch (error) {
    if (error instanceof LeaseNotAvailableError) return error;
    throw error;
  }
}
