/** For whoever writes a store: what every store checks before any I/O, and why a lease is lost. Published as `lessor/store`. */
export {
  checkAcquireRequest,
  checkListQuery,
  checkReadRequest,
  checkReleaseRequest,
  checkRenewRequest,
  checkRevokeRequest,
  nextFencingToken,
} from './requests.ts';
export { lostReason, names } from './lost-reason.ts';
export type { NewestLease, ShownLease } from './lost-reason.ts';
export { isExpired, leaseIdOf } from '../../machines/lease.rules.ts';
