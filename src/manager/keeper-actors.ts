/** The keeper machine with its actors and delays: what it does to a store, and when, by the manager's clock. */
import { fromPromise } from 'xstate';
import { keeperMachine } from '../../machines/keeper.machine.ts';
import type { AskAnswer, KeeperContext, ReleaseAnswer, RenewAnswer } from '../../machines/keeper.types.ts';
import type { Clock } from '../clock.ts';
import { OutcomeUnknownError } from '../errors.ts';
import type { LeaseStore, ReleaseRequest } from '../stores/store.ts';
import { LateGrants } from './late-grants.ts';
import type { Renewals } from './renewals.ts';
import { referenceOf } from './renewals.ts';
import { giveBack } from './give-back.ts';
import { asLeaseError, judge, request } from './request.ts';
import type { WakeUps } from './wake-ups.ts';
import { deadlineAfter, momentOf, secondsLeft } from './worker-deadline.ts';
import { millisecondsToDeadline, millisecondsToPoll, millisecondsToRenewal, millisecondsToRetry } from './pauses.ts';

export interface KeeperParts {
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly renewals: Renewals;
  readonly wakeUps: WakeUps;
}

/** One machine for all leases of a manager: what belongs to a lease is in the context of its actor. */
export function provideKeeper({ store, clock, renewals, wakeUps }: KeeperParts) {
  const lateGrants = new LateGrants(store);
  return keeperMachine.provide({
    actors: {
      ask: fromPromise<AskAnswer, KeeperContext>(({ input, signal }) => ask(store, clock, lateGrants, input, signal)),
      wakeUp: fromPromise<void, KeeperContext>(({ input, signal }) => wakeUps.next(input.runId, signal)),
      renew: fromPromise<RenewAnswer, KeeperContext>(({ input }) => renewals.renew(input)),
      release: fromPromise<ReleaseAnswer, KeeperContext>(({ input }) =>
        giveBack(store, clock, referenceOf(input.lease!), input.times),
      ),
      withdraw: fromPromise<void, KeeperContext>(async ({ input }) => {
        const { runId, workerId, acquisitionId } = input;
        const taken: ReleaseRequest = { runId, workerId, acquisitionId };
        lateGrants.refuse(acquisitionId);
        await giveBack(store, clock, taken, input.times);
      }),
    },
    delays: {
      deadline: ({ context }) => millisecondsToDeadline(context, clock),
      renewal: ({ context }) => millisecondsToRenewal(context, clock),
      retry: ({ context }) => millisecondsToRetry(context),
      poll: ({ context }) => millisecondsToPoll(context, clock),
    },
  });
}

/** Asks once. Never rejects. */
async function ask(
  store: LeaseStore,
  clock: Clock,
  lateGrants: LateGrants,
  { runId, workerId, acquisitionId, reacquire, times, waitUntilSeconds }: KeeperContext,
  signal: AbortSignal,
): Promise<AskAnswer> {
  const asked = { runId, workerId, acquisitionId, ttlSeconds: times.ttlSeconds, reacquire };
  const sentAt = momentOf(clock);
  const waitOver = (): boolean => waitUntilSeconds !== null && clock.monotonicSeconds() >= waitUntilSeconds;
  try {
    const result = await request((given) => store.acquire(asked, { signal: given }), {
      clock,
      timeoutSeconds: times.requestTimeoutSeconds,
      signal,
      onGivenUp: (asking) => lateGrants.watch(acquisitionId, asking),
    });
    if (result.status === 'held') {
      const { workerId: holder, fencingToken, retryAfterSeconds } = result;
      return { status: 'held', holder: { workerId: holder, fencingToken, retryAfterSeconds }, waitOver: waitOver() };
    }
    const deadline = deadlineAfter(sentAt, times);
    if (secondsLeft(deadline, clock) > 0) return { status: 'granted', lease: result.lease, deadline };
    const error = new OutcomeUnknownError('The grant arrived after its deadline, so it is none');
    return { status: 'failed', error, unknown: true, waitOver: waitOver() };
  } catch (error) {
    const { unknown, retryable } = judge(error);
    return { status: 'failed', error: asLeaseError(error), unknown, waitOver: !retryable || waitOver() };
  }
}
