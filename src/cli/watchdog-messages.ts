/** What `lessor run` and its watchdog tell each other: lines of JSON one way, single words the other. */
import { uptime } from 'node:os';
import type { EndingPlan } from './deadline.ts';

/** A moment on two clocks that all processes of a machine share: one stands still while the machine is suspended, one does not. */
export interface SharedDeadline {
  readonly monotonicSeconds: number;
  readonly bootSeconds: number;
}

export type WatchdogMessage =
  | {
      readonly type: 'lease';
      readonly runId: string;
      readonly acquisitionId: string;
      readonly plan: EndingPlan;
      readonly deadline: SharedDeadline;
    }
  /** The command was started and leads this group. */
  | { readonly type: 'command'; readonly leaderId: number }
  | { readonly type: 'renewed'; readonly deadline: SharedDeadline }
  /** The command was told to end, and has until then. */
  | { readonly type: 'terminated'; readonly deadline: SharedDeadline }
  /** All is over: the pipe may close. */
  | { readonly type: 'goodbye' };

/** `terminated`: the watchdog has told the command to end, because nothing was renewed. */
export type WatchdogAnswer = 'ready' | 'terminated';

export function deadlineIn(seconds: number): SharedDeadline {
  return { monotonicSeconds: monotonicSeconds() + seconds, bootSeconds: uptime() + seconds };
}

/** By the clock that is further on. */
export function secondsUntil(deadline: SharedDeadline): number {
  return Math.min(deadline.monotonicSeconds - monotonicSeconds(), deadline.bootSeconds - uptime());
}

/** `performance.now()` counts from the start of its process, this from the same moment in all of them. */
export function monotonicSeconds(): number {
  return Number(process.hrtime.bigint()) / 1e9;
}
