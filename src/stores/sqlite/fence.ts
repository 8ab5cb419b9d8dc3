/** The fence of SQLite: one writer per file, so whoever has its lock sees every write that came before. */
import { LeaseLostError, UnfencedRunError } from '../../errors.ts';
import type { Fence, OpenRequest } from '../../session/documents.ts';
import type { LostReason } from '../../lease.ts';
import { names } from '../lost-reason.ts';
import type { LeaseRow } from './rows.ts';
import { isCurrentRow, reasonOf } from './rows.ts';
import type { SqliteStatements } from './statements.ts';

interface FenceRow {
  readonly fencingToken: number;
  readonly acquisitionId: string;
}

/** Whether every fence stands already as high as its lease: then there is nothing to raise, and its older writes are over. */
export function isRaised(statements: SqliteStatements, fences: readonly Fence[]): boolean {
  return fences.every((fence) => {
    const row = statements.fenceRow.get(fence.runId) as FenceRow | undefined;
    return row?.fencingToken === fence.fencingToken && (fence.acquisitionId ?? row.acquisitionId) === row.acquisitionId;
  });
}

/**
 * Checks that the lease is still its run's newest, and raises the fence to it. To be called within a write transaction,
 * which is what the older writes and the newer owner wait for.
 *
 * @throws LeaseLostError when it is not, and nothing was raised.
 */
export function raiseFence(statements: SqliteStatements, fence: Fence): void {
  const lease = checkLease(statements, fence);
  statements.raiseFence.run(fence.runId, lease.fencingToken, lease.acquisitionId);
}

/** @throws LeaseLostError when the lease is not its run's newest, or the fence stands above it. */
export function checkLease(statements: SqliteStatements, fence: Fence): LeaseRow {
  const row = leaseRow(statements, fence.runId);
  if (!isCurrentRow(row) || !names(fence, row)) throw new LeaseLostError(fence, reasonOf(fence, row));
  const raised = statements.fenceRow.get(fence.runId) as FenceRow | undefined;
  const reason = raised && refusalBy(raised, row);
  if (reason) throw new LeaseLostError(fence, reason);
  return row;
}

/** @throws UnfencedRunError when a run was ever leased, has no fence here, and must have one. */
export function checkUnfenced(statements: SqliteStatements, { runIds, fences, allowUnfenced }: OpenRequest): void {
  if (allowUnfenced) return;
  const fenced = new Set(fences.map(({ runId }) => runId));
  const unfenced = runIds.find((runId) => !fenced.has(runId) && leaseRow(statements, runId) !== undefined);
  if (unfenced !== undefined) throw new UnfencedRunError(unfenced);
}

/** A token that was issued twice, after a restore, opens the fence for the acquisition that was there first, and no other. */
function refusalBy(raised: FenceRow, lease: FenceRow): LostReason | undefined {
  if (raised.fencingToken < lease.fencingToken) return undefined;
  const isSame = raised.fencingToken === lease.fencingToken && raised.acquisitionId === lease.acquisitionId;
  return isSame ? undefined : 'superseded';
}

function leaseRow(statements: SqliteStatements, runId: string): LeaseRow | undefined {
  const found = statements.look.get(runId, runId) as LeaseRow | { readonly runId: null };
  return found.runId === null ? undefined : found;
}
