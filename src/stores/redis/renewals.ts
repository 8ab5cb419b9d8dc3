/** Many renewals in one go: a script for the leases of each bucket, and the results in the order that was asked for. */
import { OutcomeUnknownError, StoreUnavailableError } from '../../errors.ts';
import type { LeaseRef } from '../../lease.ts';
import type { RenewResult } from '../store.ts';
import { renewResultOf, type Answer } from './answers.ts';
import { bucketOf } from './keys.ts';

/** A script with so many leases keeps the server for a fraction of a millisecond. */
const MOST = 100;

/** Renews leases of one bucket, and gives an answer for each. */
export type RenewBatch = (bucket: number, leases: readonly LeaseRef[]) => Promise<readonly Answer[]>;

interface Batch {
  readonly bucket: number;
  /** Where they stand in what was asked. */
  readonly indexes: number[];
}

/**
 * One result for each lease.
 *
 * @throws StoreUnavailableError when nothing was renewed. OutcomeUnknownError when a batch failed and others may not have.
 */
export async function renewalsOf(leases: readonly LeaseRef[], renew: RenewBatch): Promise<readonly RenewResult[]> {
  const results: RenewResult[] = [];
  const batches = batchesOf(leases);
  const settled = await Promise.allSettled(
    batches.map(async ({ bucket, indexes }) => {
      const answers = await renew(
        bucket,
        indexes.map((index) => leases[index]!),
      );
      checkAnswers(answers);
      indexes.forEach((index, at) => (results[index] = renewResultOf(leases[index]!, answers[at]!)));
    }),
  );
  const failures = settled.flatMap((each): unknown[] => (each.status === 'rejected' ? [each.reason] : []));
  if (failures.length > 0) throw failureOf(failures, batches.length);
  return results;
}

function batchesOf(leases: readonly LeaseRef[]): Batch[] {
  const batches: Batch[] = [];
  const open = new Map<number, Batch>();
  for (const [index, { runId }] of leases.entries()) {
    const bucket = bucketOf(runId);
    let batch = open.get(bucket);
    if (batch === undefined || batch.indexes.length === MOST) {
      batch = { bucket, indexes: [] };
      batches.push(batch);
      open.set(bucket, batch);
    }
    batch.indexes.push(index);
  }
  return batches;
}

/** A record that is damaged is its own lease's loss; when the server refused all of them, it is the server. */
function checkAnswers(answers: readonly Answer[]): void {
  if (!answers.every(([status]) => status === 'error')) return;
  throw new StoreUnavailableError(`Redis refused: ${answers[0]?.[1]}`);
}

function failureOf(failures: readonly unknown[], batches: number): unknown {
  const [first] = failures;
  const isNothingApplied = failures.every((failure) => failure instanceof StoreUnavailableError);
  if (!(first instanceof StoreUnavailableError) || (isNothingApplied && failures.length === batches)) return first;
  return new OutcomeUnknownError(`Some renewals failed: ${first.message}`, { cause: first });
}
