import type { PromiseActorLogic } from 'xstate';
import { fromPromise } from 'xstate';
import type { LeaseLostError, LeaseNotAvailableError } from '../errors.ts';
import { isLeaseError } from '../errors.ts';
import type { HeldLease } from './held-lease.ts';
import type { AcquireOptions, LeaseManager } from './lease-manager.ts';
import { firstOf } from './loss-signal.ts';

/** What a hold inside a machine is given: the run, how to acquire it, and whatever the work needs. */
export interface FromHoldInput extends Omit<AcquireOptions, 'signal'> {
  readonly runId: string;
}

/** How a hold inside a machine ended. Any other failure, the work's own included, is the actor's error. */
export type FromHoldOutput<Result> =
  | { readonly status: 'done'; readonly result: Result }
  /** The lease ended before the work did: acquire again, read again, redo. */
  | { readonly status: 'lost'; readonly error: LeaseLostError }
  /** Another worker still had the run when the wait was over. */
  | { readonly status: 'refused'; readonly error: LeaseNotAvailableError };

/** What the work of a hold inside a machine gets. */
export interface FromHoldWork<Input> {
  readonly input: Input;
  readonly lease: HeldLease;
  /** Aborts when the lease is lost, and when the actor is stopped, while the work goes on. */
  readonly signal: AbortSignal;
}

/**
 * A hold as actor logic, to `invoke` or `spawn` in a machine of your own: acquires the run that its input names, renews the
 * lease while `work` goes on, releases it, and is done with an output that says how it ended.
 *
 * Stopping the actor ends the wait for the run or, while work goes on, aborts the work's `signal`; the lease is released
 * once the work has settled. Until then the run stays taken in this manager: an actor that is started for it meanwhile is
 * `refused` at once, whatever its `waitSeconds`. Let some time pass before trying again.
 *
 * @example
 * const worker = setup({ actors: { job: fromHold(leases, ({ lease, signal }) => doJob(lease, signal)) } }).createMachine({
 *   invoke: {
 *     id: 'job', src: 'job', input: { runId: 'job-42', waitSeconds: 60 },
 *     onDone: [{ guard: ({ event }) => event.output.status === 'done', target: '.finished' }, { target: '.again' }],
 *   },
 *   initial: 'working',
 *   states: { working: {}, finished: {}, again: {} },
 * });
 */
export function fromHold<Result, Input extends FromHoldInput = FromHoldInput>(
  leases: Pick<LeaseManager, 'hold'>,
  work: (given: FromHoldWork<Input>) => Result | PromiseLike<Result>,
): PromiseActorLogic<FromHoldOutput<Awaited<Result>>, Input> {
  return fromPromise(async ({ input, signal }) => {
    const { runId, ...options } = input;
    let held: HeldLease | null = null;
    try {
      const result = await leases.hold(runId, { ...options, signal }, async (lease) => {
        held = lease;
        const first = firstOf(signal, lease.signal);
        try {
          return await work({ input, lease, signal: first.signal });
        } finally {
          first.letGo();
        }
      });
      return { status: 'done', result };
    } catch (error) {
      if (isLoss(error, held)) return { status: 'lost', error };
      if (held === null && isRefusal(error)) return { status: 'refused', error };
      throw error;
    }
  });
}

/** The work may hold other runs too: the loss of one of those is the work's own error. */
function isLoss(error: unknown, held: HeldLease | null): error is LeaseLostError {
  if (!isLeaseError(error) || error.code !== 'LEASE_LOST') return false;
  const { runId, fencingToken } = error as LeaseLostError;
  return held === null || (runId === held.runId && fencingToken === held.fencingToken);
}

function isRefusal(error: unknown): error is LeaseNotAvailableError {
  return isLeaseError(error) && error.code === 'LEASE_NOT_AVAILABLE';
}
