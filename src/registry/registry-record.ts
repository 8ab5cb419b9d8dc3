import { isExpired, leaseIdOf } from '../../machines/lease.rules.ts';
import type { LeaseEntry, RegistryRecord } from '../../machines/registry.events.ts';
import {
  checkDuration,
  checkFencingToken,
  checkName,
  checkNow,
  checkObject,
  checkOneOf,
  checkString,
  rangeError,
} from '../options.ts';

/**
 * Reads what `toJSON` wrote. Fields that it does not know are ignored.
 *
 * @throws TypeError or RangeError for a record that is cut short, of a newer version, or contradicts itself.
 */
export function readRecord(json: unknown): RegistryRecord {
  checkObject('json', json);
  const { version, ttlSeconds, reacquire, nextToken, latestNow, leases } = json as Partial<Record<string, unknown>>;
  if (version !== 1) throw rangeError('json.version', 'to be 1', version);
  checkDuration('json.ttlSeconds', ttlSeconds);
  checkOneOf('json.reacquire', reacquire, ['refuse', 'extend']);
  checkNextToken(nextToken);
  if (latestNow !== null) checkNow('json.latestNow', latestNow);
  if (!Array.isArray(leases)) throw rangeError('json.leases', 'to be an array', leases);
  if (latestNow === null && leases.length > 0)
    throw rangeError('json.latestNow', 'to be a time, as there are leases', latestNow);
  const runs = new Set<string>();
  const tokens = new Set<number>();
  const entries = leases.map((lease: unknown, index) => readEntry(`json.leases[${index}]`, lease));
  for (const { runId, fencingToken } of entries) {
    if (runs.has(runId)) throw rangeError('json.leases', 'to name each run once', runId);
    if (tokens.has(fencingToken)) throw rangeError('json.leases', 'to use each token once', fencingToken);
    runs.add(runId);
    tokens.add(fencingToken);
  }
  entries.forEach((entry, index) => checkAgrees(`json.leases[${index}]`, entry, nextToken, latestNow ?? 0));
  return { version, ttlSeconds, reacquire, nextToken, latestNow, leases: entries };
}

/** The token that the next grant gets: at the counter's end it is one more than the last safe integer. */
function checkNextToken(value: unknown): asserts value is number {
  if (value !== Number.MAX_SAFE_INTEGER + 1) checkFencingToken('json.nextToken', value);
}

function readEntry(place: string, json: unknown): LeaseEntry {
  checkObject(place, json);
  const entry = json as Partial<Record<keyof LeaseEntry, unknown>>;
  const { runId, workerId, leaseId, fencingToken, expiresAt, acquisitionId, ttlSeconds, state, reported } = entry;
  checkName(`${place}.runId`, runId);
  checkName(`${place}.workerId`, workerId);
  checkString(`${place}.leaseId`, leaseId);
  checkFencingToken(`${place}.fencingToken`, fencingToken);
  checkNow(`${place}.expiresAt`, expiresAt);
  if (acquisitionId !== undefined) checkString(`${place}.acquisitionId`, acquisitionId);
  checkDuration(`${place}.ttlSeconds`, ttlSeconds);
  checkOneOf(`${place}.state`, state, ['held', 'expired']);
  return {
    runId,
    workerId,
    leaseId,
    fencingToken,
    expiresAt,
    acquisitionId,
    ttlSeconds,
    state,
    reported: reported === true,
  };
}

/** No registry writes down a lease that fails this: its fields agree with each other and with the rest of the record. */
function checkAgrees(place: string, entry: LeaseEntry, nextToken: number, latestNow: number): void {
  const { runId, workerId, leaseId, fencingToken, expiresAt, ttlSeconds, state, reported } = entry;
  if (fencingToken >= nextToken)
    throw rangeError(`${place}.fencingToken`, `to be below nextToken ${nextToken}`, fencingToken);
  const ownId = leaseIdOf(runId, workerId, fencingToken);
  if (leaseId !== ownId) throw rangeError(`${place}.leaseId`, `to be ${JSON.stringify(ownId)}`, leaseId);
  if (expiresAt > latestNow + ttlSeconds)
    throw rangeError(
      `${place}.expiresAt`,
      `to be at most ${ttlSeconds} seconds after latestNow ${latestNow}`,
      expiresAt,
    );
  if (state === 'expired' && !isExpired(entry, latestNow))
    throw rangeError(`${place}.state`, `to be 'held', as it expires after latestNow ${latestNow}`, state);
  if (reported && state === 'held')
    throw rangeError(`${place}.reported`, 'to be false of a lease that is held', reported);
}
