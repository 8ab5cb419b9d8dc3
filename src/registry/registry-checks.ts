import type { HeartbeatCall, RegistryEvent } from '../../machines/registry.events.ts';
import type { RegistryRuns } from '../../machines/registry.runs.ts';
import {
  checkDuration,
  checkFencingToken,
  checkName,
  checkNow,
  checkOneOf,
  checkString,
  rangeError,
} from '../options.ts';

/** What the check of a call needs to know of the registry. */
type Known = Pick<RegistryRuns, 'latestNow' | 'ttlSeconds'>;

/** A call that makes a lease last. */
type Timed = Pick<HeartbeatCall, 'now' | 'ttlSeconds'>;

/**
 * Checks a call's fields, whether they came as arguments or as an event. An event that is no call passes.
 *
 * @throws TypeError or RangeError that names the field.
 */
export function checkCall(event: RegistryEvent, runs: Known): void {
  switch (event.type) {
    case 'lease.acquire':
      checkName('runId', event.runId);
      checkName('workerId', event.workerId);
      checkOneOf('reacquire', event.reacquire ?? 'refuse', ['refuse', 'extend']);
      checkAcquisitionId(event.acquisitionId);
      return checkLifetime(event, runs);
    case 'lease.heartbeat':
      checkClaim(event);
      return checkLifetime(event, runs);
    case 'lease.validate':
      checkName('runId', event.runId);
      checkClaim(event);
      return checkNow('now', event.now);
    case 'lease.release':
      return checkClaim(event);
    case 'lease.expire':
      return checkNow('now', event.now);
  }
}

function checkClaim(claim: Extract<RegistryEvent, { readonly leaseId: string }>): void {
  checkString('leaseId', claim.leaseId);
  checkFencingToken('fencingToken', claim.fencingToken);
  checkAcquisitionId(claim.acquisitionId);
}

function checkAcquisitionId(value: unknown): void {
  if (value !== undefined) checkString('acquisitionId', value);
}

/** No lease is born expired, and none lives for ever. */
function checkLifetime({ now, ttlSeconds }: Timed, runs: Known): void {
  checkNow('now', now);
  if (ttlSeconds !== undefined) checkDuration('ttlSeconds', ttlSeconds);
  const seconds = ttlSeconds ?? runs.ttlSeconds;
  const from = Math.max(now, runs.latestNow);
  const until = from + seconds;
  if (!(Number.isFinite(until) && until > from))
    throw rangeError('now', `to leave room for ${seconds} seconds of ttl`, from);
}
