/** Until when a worker may believe that it holds its run, counted on both of its clocks. */
import type { KeeperTimes, Moment } from '../../machines/keeper.types.ts';
import type { Clock } from '../clock.ts';

/** Readings of the clock since boot are in steps: so far apart the two clocks are by reading alone. */
const BOOT_STEP_SECONDS = 0.01;

/** Now, on both clocks. */
export function momentOf(clock: Clock): Moment {
  return { monotonicSeconds: clock.monotonicSeconds(), bootSeconds: clock.bootSeconds() };
}

/** The deadline that a good answer gives: counted from before its request was handed to the client, less the margin. */
export function deadlineAfter(sentAt: Moment, { ttlSeconds, marginSeconds }: KeeperTimes): Moment {
  const seconds = ttlSeconds - marginSeconds;
  return { monotonicSeconds: sentAt.monotonicSeconds + seconds, bootSeconds: sentAt.bootSeconds + seconds };
}

/** A renewal moves a deadline forward only. */
export function laterOf(one: Moment, other: Moment): Moment {
  return {
    monotonicSeconds: Math.max(one.monotonicSeconds, other.monotonicSeconds),
    bootSeconds: Math.max(one.bootSeconds, other.bootSeconds),
  };
}

/** What is left, by the clock that says less: 0 or below once either has reached the deadline. */
export function secondsLeft(deadline: Moment, clock: Clock): number {
  return Math.min(deadline.monotonicSeconds - clock.monotonicSeconds(), deadline.bootSeconds - clock.bootSeconds());
}

/**
 * What is left, where the clock since boot comes to the deadline first, as after a suspension: timers go by the monotonic
 * clock, and would come too late. `Infinity` where a timer comes in time.
 */
export function secondsToUnnoticed(deadline: Moment, now: Moment): number {
  const byTimers = deadline.monotonicSeconds - now.monotonicSeconds;
  const byBoot = deadline.bootSeconds - now.bootSeconds;
  return byTimers - byBoot > BOOT_STEP_SECONDS ? byBoot : Infinity;
}
