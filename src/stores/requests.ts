/** What a store is asked, checked before any I/O, in one voice for every store. Behind this door nothing is checked again. */
import type { LeaseRef } from '../lease.ts';
import {
  checkDuration,
  checkFencingToken,
  checkName,
  checkObject,
  checkOneOf,
  checkSignal,
  rangeError,
} from '../options.ts';
import type { AcquireRequest, CallOptions, ListQuery, ReleaseRequest, RevokeReason } from './store.ts';

/** The longest ttl that a store takes, in seconds: some 31 years, so that no store's clock or unit overflows. */
export const MAX_TTL_SECONDS = 1e9;

/** @throws TypeError or RangeError that names the argument. */
export function checkAcquireRequest(request: AcquireRequest, options?: CallOptions): void {
  checkObject('request', request);
  checkName('runId', request.runId);
  checkName('workerId', request.workerId);
  checkName('acquisitionId', request.acquisitionId);
  checkDuration('ttlSeconds', request.ttlSeconds, MAX_TTL_SECONDS);
  if (request.reacquire !== undefined) checkOneOf('reacquire', request.reacquire, ['extend', 'refuse']);
  checkCallOptions(options);
}

/** An empty list is fine: it is answered by an empty one. @throws TypeError or RangeError that names the argument. */
export function checkRenewRequest(leases: readonly LeaseRef[], ttlSeconds: number, options?: CallOptions): void {
  if (!Array.isArray(leases)) throw new TypeError(`Expected \`leases\` to be an array, got ${typeof leases}`);
  for (let index = 0; index < leases.length; index += 1) checkLeaseRef(leases[index], `leases[${index}].`);
  checkDuration('ttlSeconds', ttlSeconds, MAX_TTL_SECONDS);
  checkCallOptions(options);
}

/** @param path - what stands before the argument's name in a refusal. */
export function checkLeaseRef(lease: unknown, path = ''): asserts lease is LeaseRef {
  checkObject(path === '' ? 'lease' : path.slice(0, -1), lease);
  const { runId, workerId, fencingToken, acquisitionId } = lease as Partial<LeaseRef>;
  checkName(`${path}runId`, runId);
  checkName(`${path}workerId`, workerId);
  checkName(`${path}acquisitionId`, acquisitionId);
  checkFencingToken(`${path}fencingToken`, fencingToken);
}

/** A release may leave the token out, to take back an acquire that was never answered. */
export function checkReleaseRequest(lease: ReleaseRequest, options?: CallOptions): void {
  checkObject('lease', lease);
  checkName('runId', lease.runId);
  checkName('workerId', lease.workerId);
  checkName('acquisitionId', lease.acquisitionId);
  if (lease.fencingToken !== undefined) checkFencingToken('fencingToken', lease.fencingToken);
  checkCallOptions(options);
}

/** @throws TypeError or RangeError that names the argument. */
export function checkRevokeRequest(runId: string, why: RevokeReason, options?: CallOptions): void {
  checkName('runId', runId);
  checkObject('why', why);
  checkName('why.by', why.by);
  checkName('why.reason', why.reason);
  checkCallOptions(options);
}

/** Of `read` and `currentFence`. */
export function checkReadRequest(runId: string, options?: CallOptions): void {
  checkName('runId', runId);
  checkCallOptions(options);
}

/** @throws TypeError or RangeError that names the argument. */
export function checkListQuery(query: ListQuery = {}, options?: CallOptions): void {
  checkObject('query', query);
  if (query.state !== undefined) checkOneOf('query.state', query.state, ['free', 'held', 'expired']);
  if (query.workerId !== undefined) checkName('query.workerId', query.workerId);
  // The empty prefix is every run's.
  if (query.prefix !== undefined && query.prefix !== '') checkName('query.prefix', query.prefix);
  checkCallOptions(options);
}

/** The token after `fence`: never one that a number cannot hold exactly, and never an old one. */
export function nextFencingToken(fence: number): number {
  if (fence >= Number.MAX_SAFE_INTEGER) throw tokensUsedUp(fence);
  return fence + 1;
}

export function tokensUsedUp(fence: number): RangeError {
  return rangeError('fencingToken', 'to stay a safe integer: the run has used up its tokens', fence);
}

function checkCallOptions(options: CallOptions | undefined): void {
  if (options === undefined) return;
  checkObject('options', options);
  checkSignal('signal', options.signal);
}
