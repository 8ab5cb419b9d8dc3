/** Leases with fencing tokens: one worker per run, and a worker that lost its run can change nothing any more. */
export { LeaseRegistry } from './registry/lease-registry.ts';
export type { LeaseRegistryOptions } from './registry/lease-registry.ts';
export type { RegistryEvents } from './registry/registry-events.ts';
export type { Inspector } from './inspect/quiet-inspector.ts';

export { MemoryStore } from './stores/memory.ts';
export type { MemoryStoreOptions } from './stores/memory.ts';
export type {
  AcquireRequest,
  AcquireResult,
  CallOptions,
  Durability,
  GrantedResult,
  HeldResult,
  LeaseRecord,
  LeaseStore,
  ListQuery,
  ReleaseRequest,
  RenewResult,
  RevokedLease,
  RevokeReason,
  RunChange,
} from './stores/store.ts';

export type { Lease, LeaseRef, LostReason, Reacquire, RunState, StoredLease } from './lease.ts';
export {
  ConflictError,
  isLeaseError,
  LeaseError,
  LeaseLostError,
  LeaseNotAvailableError,
  OutcomeUnknownError,
  StateLostError,
  StoreUnavailableError,
} from './errors.ts';
export type { Holder, LeaseErrorCode, LeaseLostOptions } from './errors.ts';
