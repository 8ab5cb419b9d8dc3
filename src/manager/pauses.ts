/** How long a keeper pauses before its next renewal, retry or ask. Milliseconds, as the machine's delays are. */
import type { KeeperContext } from '../../machines/keeper.types.ts';
import type { Clock } from '../clock.ts';

/** Renewals fall on a grid, so that those of many leases come due in one turn and share their request. */
const GRID_PER_RENEWAL = 10;
/** What separates two leases on one point of the grid: the time from a timer to its sending. */
const SAME_POINT = 0.05;
const SHORTEST_POLL_SECONDS = 0.02;

/** By the monotonic clock, which timers go by. A deadline that the clock since boot reaches first is the suspension watch's. */
export function millisecondsToDeadline({ deadline }: KeeperContext, clock: Clock): number {
  return Math.max(0, deadline!.monotonicSeconds - clock.monotonicSeconds()) * 1000;
}

/**
 * Until the next renewal: `renewSeconds` after the last good request was sent, or up to a tenth of that earlier. It goes
 * by the deadline and never by counting, and a slow answer does not turn renewing into a hot loop.
 */
export function millisecondsToRenewal({ times, deadline }: KeeperContext, clock: Clock): number {
  const { ttlSeconds, marginSeconds, renewSeconds } = times;
  const sentAt = deadline!.monotonicSeconds - (ttlSeconds - marginSeconds);
  const grid = renewSeconds / GRID_PER_RENEWAL;
  const dueAt = Math.floor((sentAt + renewSeconds) / grid + SAME_POINT) * grid;
  return Math.max(dueAt - clock.monotonicSeconds(), renewSeconds / 4) * 1000;
}

/** After a failed renewal: doubled from failure to failure, up to a tenth of the ttl, and jittered. */
export function millisecondsToRetry({ times, failures }: KeeperContext): number {
  const seconds = Math.min(times.ttlSeconds / 10, (times.ttlSeconds / 60) * 2 ** (failures - 1));
  return jittered(seconds) * 1000;
}

/** Until the next ask for a held run: the poll, the holder's expiry or the end of the wait, whichever comes first. */
export function millisecondsToPoll({ times, holder, waitUntilSeconds }: KeeperContext, clock: Clock): number {
  const { pollSeconds } = times;
  const poll = jittered(pollSeconds);
  const expiry = holder === null ? poll : holder.retryAfterSeconds + jittered(pollSeconds / 10);
  const seconds = Math.max(SHORTEST_POLL_SECONDS, Math.min(poll, expiry));
  if (waitUntilSeconds === null) return seconds * 1000;
  return Math.max(0, Math.min(seconds, waitUntilSeconds - clock.monotonicSeconds())) * 1000;
}

function jittered(seconds: number): number {
  return seconds * (0.5 + Math.random() / 2);
}
