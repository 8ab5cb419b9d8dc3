/** What became of a run between two looks at its record. */
import type { LeaseRecord } from '../stores/store.ts';

/** How the run was found at the first look, or what happened to it since the last one. */
export type What =
  'neverLeased' | 'free' | 'held' | 'expired' | 'granted' | 'takenOver' | 'released' | 'revoked' | 'forgotten';

/** One line of `lessor watch`. */
export interface RunStep {
  /** Seconds: by the store's clock where its record tells the time of the step, else when it was noticed. */
  readonly at: number;
  readonly runId: string;
  readonly what: What;
  /** The run's record after the step. Null when the store has none. */
  readonly record: LeaseRecord | null;
}

/** A run at the first look. */
export function firstSight(runId: string, record: LeaseRecord | null, now: number): RunStep {
  return { at: now, runId, what: record === null ? 'neverLeased' : record.state, record };
}

/**
 * The steps from one look to the next, in order. Renewals are none, and of leases that came and went between the looks
 * only the newest is told.
 */
export function stepsBetween(before: LeaseRecord | null, after: LeaseRecord | null, now: number): readonly RunStep[] {
  if (after === null) return before === null ? [] : [{ at: now, runId: before.runId, what: 'forgotten', record: null }];
  const { runId, acquiredAt } = after;
  const isSameLease = before?.fencingToken === after.fencingToken && before.acquiredAt <= acquiredAt;
  if (isSameLease) return before.state === after.state ? [] : [changeOf(after, now)];
  const what = before !== null && wasLapsed(before, acquiredAt) ? 'takenOver' : 'granted';
  const grant: RunStep = { at: acquiredAt, runId, what, record: after };
  return after.state === 'held' ? [grant] : [grant, changeOf(after, now)];
}

/** Whether the lease that was seen last had expired when the next one was granted. */
function wasLapsed({ state, expiresAt }: LeaseRecord, acquiredAt: number): boolean {
  return state === 'expired' || (expiresAt !== null && expiresAt <= acquiredAt);
}

function changeOf(record: LeaseRecord, now: number): RunStep {
  const { runId, state, expiresAt, revoked } = record;
  switch (state) {
    case 'held': // the store's clock went back
      return { at: now, runId, what: 'held', record };
    case 'expired':
      return { at: expiresAt ?? now, runId, what: 'expired', record };
    case 'free':
      return { at: revoked?.at ?? now, runId, what: revoked === null ? 'released' : 'revoked', record };
    default:
      return state satisfies never;
  }
}
