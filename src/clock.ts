/**
 * The clocks of a worker. Node's monotonic clock stands still while a Linux machine is suspended, the time since boot does
 * not: a lease is held only while both say so. The wall clock decides nothing.
 */
import { uptime } from 'node:os';
import { performance } from 'node:perf_hooks';

/** What a worker counts its deadline with. All in seconds; only differences mean anything. */
export interface Clock {
  /** Monotonic. May stand still while the machine is suspended. */
  monotonicSeconds(): number;
  /** Since boot, suspension included. Coarser: steps of 0.01. */
  bootSeconds(): number;
  /** Calls back once after so many seconds, or at the first turn after; returns how to cancel. At most `MAX_TIMER_SECONDS`. */
  after(seconds: number, callback: () => void): () => void;
}

/** A timer longer than `2^31 - 1` ms fires at once in Node, so longer ones are cut at this length and armed again. */
export const MAX_TIMER_SECONDS = 2 ** 30 / 1000;

export const systemClock: Clock = {
  monotonicSeconds: () => performance.now() / 1000,
  bootSeconds: uptime,
  after: (seconds, callback) => {
    const timer = setTimeout(callback, Math.max(0, seconds) * 1000);
    return () => clearTimeout(timer);
  },
};
