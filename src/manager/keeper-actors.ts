/** What a keeper does to its store, and how long it pauses, by the manager's clock. What belongs to a lease is in its context. */
import type { AskAnswer, KeeperContext, ReleaseAnswer, RenewAnswer } from '../../machines/keeper.types.ts';
import type { Clock } from '../clock.ts';
import { OutcomeUnknownError } from '../errors.ts';
import type { LeaseStore } from '../stores/store.ts';
import { giveBack } from './give-back.ts';
import { LateGrants } from './late-grants.ts';
import { millisecondsToDeadline, millisecondsToPoll, millisecondsToRenewal, millisecondsToRetry } from './pauses.ts';
import type { Renewals } from './renewals.ts';
import { referenceOf } from './renewals.ts';
import type { OnStop } from './request.ts';
import { asLeaseError, judge, request } from './request.ts';
import type { WakeUps } from './wake-ups.ts';
import { deadlineAfter, momentOf, secondsLeft } from './worker-deadline.ts';

/** The actors that the keeper machine names. None ever rejects. */
export interface KeeperActors {
  ask(context: KeeperContext, onStop: OnStop): Promise<AskAnswer>;
  wakeUp(context: KeeperContext, onStop: OnStop): Promise<void>;
  renew(context: KeeperContext, onStop: OnStop): Promise<RenewAnswer>;
  release(context: KeeperContext): Promise<ReleaseAnswer>;
  withdraw(context: KeeperContext): Promise<void>;
}

/** The delays that the keeper machine names, in milliseconds. */
export type KeeperDelays = Record<'poll' | 'deadline' | 'renewal' | 'retry', (context: KeeperContext) => number>;

export interface KeeperParts {
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly renewals: Renewals;
  readonly wakeUps: WakeUps;
}

export function keeperActors({ store, clock, renewals, wakeUps }: KeeperParts): KeeperActors {
  const lateGrants = new LateGrants(store);
  return {
    ask: (context, onStop) => ask({ store, clock, lateGrants }, context, onStop),
    wakeUp: ({ runId }, onStop) => wakeUps.next(runId, onStop),
    renew: (context, onStop) => renewals.renew(context, onStop),
    release: ({ lease, times }) => giveBack(store, clock, referenceOf(lease!), times),
    withdraw: async ({ runId, workerId, acquisitionId, times }) => {
      lateGrants.refuse(acquisitionId);
      await giveBack(store, clock, { runId, workerId, acquisitionId }, times);
    },
  };
}

export function keeperDelays(clock: Clock): KeeperDelays {
  return {
    poll: (context) => millisecondsToPoll(context, clock),
    deadline: (context) => millisecondsToDeadline(context, clock),
    renewal: (context) => millisecondsToRenewal(context, clock),
    retry: millisecondsToRetry,
  };
}

interface AskParts {
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly lateGrants: LateGrants;
}

/** Asks once. */
async function ask(
  { store, clock, lateGrants }: AskParts,
  { runId, workerId, acquisitionId, reacquire, times, waitUntilSeconds }: KeeperContext,
  onStop: OnStop,
): Promise<AskAnswer> {
  const asked = { runId, workerId, acquisitionId, ttlSeconds: times.ttlSeconds, reacquire };
  const sentAt = momentOf(clock);
  const waitOver = (): boolean => waitUntilSeconds !== null && clock.monotonicSeconds() >= waitUntilSeconds;
  try {
    const result = await request((signal) => store.acquire(asked, { signal }), {
      clock,
      timeoutSeconds: times.requestTimeoutSeconds,
      onStop,
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
