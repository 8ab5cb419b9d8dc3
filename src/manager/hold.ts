import type { HeldLease } from './held-lease.ts';

/** What work may give. */
export type Work<Result> = (lease: HeldLease) => Result | PromiseLike<Result>;

type Outcome<Result> = { readonly result: Awaited<Result> } | { readonly workError: unknown };

/**
 * Runs the work under the lease, and releases once it has settled, however it did.
 *
 * A lease that was lost before then makes the whole a loss, with the result or the error of the work attached. Otherwise
 * the work's own result or error comes out, and a failing release never hides it.
 */
export async function runUnder<Result>(lease: HeldLease, work: Work<Result>): Promise<Awaited<Result>> {
  const outcome = await outcomeOf(lease, work);
  const { loss } = lease;
  if (loss !== null) {
    // The work may have thrown the very loss, as the signal's reason.
    throw 'workError' in outcome && outcome.workError === loss ? loss : Object.assign(loss, outcome);
  }
  await lease.release().catch(() => undefined);
  if ('workError' in outcome) throw outcome.workError;
  return outcome.result;
}

async function outcomeOf<Result>(lease: HeldLease, work: Work<Result>): Promise<Outcome<Result>> {
  try {
    return { result: await work(lease) };
  } catch (workError) {
    return { workError };
  }
}
