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
  const runs = new Set<string>();
  const tokens = new Set<number>();
  const entries = leases.map((lease: unknown, index) => readEntry(`json.leases[${index}]`, lease, nextToken));
  for (const { runId, fencingToken } of entries) {
    if (runs.has(runId)) throw rangeError('json.leases', 'to name each run once', runId);
    if (tokens.has(fencingToken)) throw rangeError('json.leases', 'to use each token once', fencingToken);
    runs.add(runId);
    tokens.add(fencingToken);
  }
  return { version, ttlSeconds, reacquire, nextToken, latestNow, leases: entries };
}

/** The token that the next grant gets: at the counter's end it is one more than the last safe integer. */
function checkNextToken(value: unknown): asserts value is number {
  if (value !== Number.MAX_SAFE_INTEGER + 1) checkFencingToken('json.nextToken', value);
}

function readEntry(place: string, json: unknown, nextToken: number): LeaseEntry {
  checkObject(place, json);
  const entry = json as Partial<Record<keyof LeaseEntry, unknown>>;
  const { runId, workerId, leaseId, fencingToken, expiresAt, acquisitionId, ttlSeconds, state, reported } = entry;
  checkName(`${place}.runId`, runId);
  checkName(`${place}.workerId`, workerId);
  checkString(`${place}.leaseId`, leaseId);
  checkFencingToken(`${place}.fencingToken`, fencingToken);
  if (fencingToken >= nextToken)
    throw rangeError(`${place}.fencingToken`, `to be below nextToken ${nextToken}`, fencingToken);
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
