/** When a command is told to end, and when it is killed, by what its lease has left. Shared by `lessor run` and its watchdog. */

export interface EndingPlan {
  /** Between SIGTERM and SIGKILL, when the lease is not renewed. */
  readonly graceSeconds: number;
  /** The SIGKILL comes this long before the worker's deadline, for a late timer and for dying itself. */
  readonly reserveSeconds: number;
}

export type EndingStep = 'none' | 'terminate' | 'kill';

export interface Ending {
  readonly step: EndingStep;
  /** Until the next step, if nothing is renewed. 0 after the last one. */
  readonly nextInSeconds: number;
}

/** A sixth of the ttl, which leaves time for two renewals before, and at most 10 seconds. */
export function defaultGraceSeconds(ttlSeconds: number): number {
  return Math.min(10, ttlSeconds / 6);
}

export function endingPlan(ttlSeconds: number, graceSeconds: number): EndingPlan {
  return { graceSeconds, reserveSeconds: Math.min(1, ttlSeconds / 10) };
}

/** What to do now, with so much left on the worker's own deadline. */
export function endingAt(remainingSeconds: number, plan: EndingPlan): Ending {
  const untilKill = remainingSeconds - plan.reserveSeconds;
  if (untilKill <= 0) return { step: 'kill', nextInSeconds: 0 };
  const untilTerminate = untilKill - plan.graceSeconds;
  if (untilTerminate <= 0) return { step: 'terminate', nextInSeconds: untilKill };
  return { step: 'none', nextInSeconds: untilTerminate };
}
