import { checkNow } from '../options.ts';

/**
 * The same clock, but one that never goes back: a reading below the latest counts as the latest, so nothing un-expires.
 *
 * @throws TypeError or RangeError, from the clock that it returns, for a reading that is no finite number.
 */
export function forwardClock(now: () => number): () => number {
  let latest = Number.NEGATIVE_INFINITY;
  return () => {
    const reading = now();
    checkNow('now()', reading);
    return (latest = Math.max(latest, reading));
  };
}

export function monotonicNow(): number {
  return (performance.timeOrigin + performance.now()) / 1000;
}
