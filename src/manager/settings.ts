/** What a manager is told, checked once: durations that cannot work together are refused before anything is asked. */
import type { KeeperTimes } from '../../machines/keeper.types.ts';
import type { Clock } from '../clock.ts';
import type { Inspector } from '../inspect/quiet-inspector.ts';
import { checkDuration, checkFunction, checkName, checkNow, checkObject, rangeError } from '../options.ts';

const MIN_TTL_SECONDS = 1;
/** A day. A dead worker's run stays taken for as long as its ttl. */
const MAX_TTL_SECONDS = 86_400;
/** So many renewals without an answer a lease must survive. */
const MIN_ATTEMPTS = 2;

/** How a manager holds its leases. All durations are seconds. */
export interface LeaseManagerOptions {
  /** How long a lease lives without a renewal. At least 1, at most 86,400. @default 30 */
  readonly ttlSeconds?: number | undefined;
  /** Takes a `ttlSeconds` above 86,400: a dead worker's run stays taken for so long. @default false */
  readonly allowLongTtl?: boolean | undefined;
  /** Who acquires, where a call names nobody. @default host, process and a random part: one per manager, in containers too */
  readonly workerId?: string | undefined;
  /** Whether leases are renewed while they are held. Without it `lease.renew()` is the caller's part. @default true */
  readonly autoRenew?: boolean | undefined;
  /**
   * A renewal is due so long after the last good request was sent, or up to a tenth of that earlier. After a slow answer
   * it waits for a quarter of that. @default ttlSeconds / 3
   */
  readonly renewSeconds?: number | undefined;
  /** How long one request may wait for its answer. @default ttlSeconds / 6 */
  readonly requestTimeoutSeconds?: number | undefined;
  /** How long a release is retried. @default ttlSeconds / 3 */
  readonly releaseTimeoutSeconds?: number | undefined;
  /** The longest pause between two asks for a held run. Jittered. @default 1 */
  readonly pollSeconds?: number | undefined;
  /** By how much the worker's clock and the store's may differ in rate. From 0 to below 1. @default 0.01 */
  readonly drift?: number | undefined;
  /** What the worker's clocks and timers cannot tell apart. @default 0.015 */
  readonly granularitySeconds?: number | undefined;
  /** The worker's clocks and timers. @default the system's */
  readonly clock?: Clock | undefined;
  /** Gets xstate's inspection events of every keeper. */
  readonly inspect?: Inspector | undefined;
}

/** The times of a lease, by the manager's settings and its own. What was not told follows from the ttl. */
export function keeperTimes(
  options: LeaseManagerOptions,
  own: Pick<LeaseManagerOptions, 'ttlSeconds' | 'autoRenew'> = {},
): KeeperTimes {
  const { ttlSeconds = 30 } = own.ttlSeconds === undefined ? options : own;
  const { autoRenew = true } = own.autoRenew === undefined ? options : own;
  checkTtl(ttlSeconds, options.allowLongTtl);
  const {
    renewSeconds = ttlSeconds / 3,
    requestTimeoutSeconds = ttlSeconds / 6,
    releaseTimeoutSeconds = ttlSeconds / 3,
    pollSeconds = 1,
    drift = 0.01,
    granularitySeconds = 0.015,
  } = options;
  checkDuration('renewSeconds', renewSeconds);
  checkDuration('requestTimeoutSeconds', requestTimeoutSeconds);
  checkDuration('releaseTimeoutSeconds', releaseTimeoutSeconds);
  checkDuration('pollSeconds', pollSeconds);
  checkFraction('drift', drift);
  checkNow('granularitySeconds', granularitySeconds);
  if (granularitySeconds < 0) throw rangeError('granularitySeconds', 'to be 0 seconds or more', granularitySeconds);
  const marginSeconds = ttlSeconds * drift + granularitySeconds;
  const times = { ttlSeconds, renewSeconds, requestTimeoutSeconds, marginSeconds, pollSeconds, releaseTimeoutSeconds };
  checkTogether(times, autoRenew);
  return times;
}

export function checkManagerOptions(options: LeaseManagerOptions): void {
  checkObject('options', options);
  const { workerId, clock } = options;
  if (workerId !== undefined) checkName('workerId', workerId);
  checkFlag('autoRenew', options.autoRenew);
  checkFlag('allowLongTtl', options.allowLongTtl);
  if (clock === undefined) return;
  checkObject('clock', clock);
  for (const member of ['monotonicSeconds', 'bootSeconds', 'after'] as const) {
    checkFunction(`clock.${member}`, clock[member]);
  }
}

export function checkFlag(argument: string, value: unknown): asserts value is boolean | undefined {
  if (value === undefined || typeof value === 'boolean') return;
  throw new TypeError(`Expected \`${argument}\` to be a boolean, got ${typeof value}`);
}

function checkTtl(ttlSeconds: unknown, allowLongTtl = false): void {
  checkDuration('ttlSeconds', ttlSeconds);
  if (ttlSeconds < MIN_TTL_SECONDS) throw rangeError('ttlSeconds', `to be at least ${MIN_TTL_SECONDS}`, ttlSeconds);
  if (ttlSeconds > MAX_TTL_SECONDS && !allowLongTtl) {
    throw rangeError('ttlSeconds', `to be at most ${MAX_TTL_SECONDS} without \`allowLongTtl\``, ttlSeconds);
  }
}

function checkFraction(argument: string, value: unknown): asserts value is number {
  checkNow(argument, value);
  if (!(value >= 0 && value < 1)) throw rangeError(argument, 'to be from 0 to below 1', value);
}

/** A lease must outlive the pause before its renewal and two requests without an answer. */
function checkTogether(times: KeeperTimes, autoRenew: boolean): void {
  const { ttlSeconds, marginSeconds, renewSeconds, requestTimeoutSeconds } = times;
  const believedSeconds = ttlSeconds - marginSeconds;
  const neededSeconds = autoRenew ? renewSeconds + MIN_ATTEMPTS * requestTimeoutSeconds : requestTimeoutSeconds;
  if (believedSeconds > neededSeconds) return;
  const needed = autoRenew ? `renewSeconds + ${MIN_ATTEMPTS} * requestTimeoutSeconds` : 'requestTimeoutSeconds';
  throw new RangeError(
    `Expected \`ttlSeconds\` less the margin (ttlSeconds * drift + granularitySeconds) to be above \`${needed}\`, ` +
      `got ${ttlSeconds} - ${marginSeconds} and ${neededSeconds} s: no lease would outlive a renewal without an answer`,
  );
}
