/** Leases with fencing tokens: one worker per run, and a worker that lost its run can change nothing any more. */
export { LeaseRegistry } from './registry/lease-registry.ts';
export type { LeaseRegistryOptions } from './registry/lease-registry.ts';
export { registryLogic } from './registry/registry-actor.ts';
export type { RegistryAnswer, RegistryEvent, RegistryRecord } from '../machines/registry.events.ts';
export type { RegistryActorRef, RegistryInput, RegistrySnapshot } from '../machines/registry.logic.ts';
export type { LeaseActorRef, LeaseSnapshot } from '../machines/lease.logic.ts';
export type { RegistryEvents } from './registry/registry-events.ts';
export { inspectLeases } from './inspect/inspect-leases.ts';
export type { InspectLeasesOptions } from './inspect/inspect-leases.ts';
export type { Inspector } from './inspect/quiet-inspector.ts';

export { LeaseManager } from './manager/lease-manager.ts';
export type { AcquireOptions, TryAcquireOptions } from './manager/lease-manager.ts';
export type { LeaseManagerOptions } from './manager/settings.ts';
export type { ManagerEvents } from './manager/manager-events.ts';
export { HeldLease } from './manager/held-lease.ts';
export type { Work } from './manager/hold.ts';
export { fromHold } from './manager/from-hold.ts';
export type { FromHoldInput, FromHoldOutput, FromHoldWork } from './manager/from-hold.ts';
export type { GuardedLease } from './manager/guard.ts';
export type { Clock } from './clock.ts';

export { openStore } from './stores/open-store.ts';
export type { OpenStoreOptions } from './stores/open-store.ts';
export { SqliteStore } from './stores/sqlite.ts';
export type { SqliteStoreOptions } from './stores/sqlite/options.ts';
export { PostgresStore } from './stores/postgres.ts';
export { migratePostgres } from './stores/postgres/migrate.ts';
export type { MigrateOptions, Migration } from './stores/postgres/migrate.ts';
export type { PostgresClient, PostgresPool, PostgresStatement } from './stores/postgres/client.ts';
export type { PostgresStoreOptions } from './stores/postgres/open.ts';
export type { PostgresTransaction } from './stores/postgres/fence.ts';
export type { TransactionOptions, TransactionPool, TransactionWork } from './stores/postgres/transaction.ts';
export { RedisStore } from './stores/redis.ts';
export type { RedisClient } from './stores/redis/client.ts';
export type { RedisStoreOptions } from './stores/redis/open.ts';
export { FencedCommands } from './stores/redis/fenced.ts';
export type { FencedExecOptions, RedisCommand } from './stores/redis/fenced.ts';
export { redisFunctionLibrary } from './stores/redis/fence-scripts.ts';
export type { FenceTableColumns } from './stores/fence-table.ts';
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

export type { FencedStore } from './session/fenced-store.ts';
export { openSession, Session } from './session/session.ts';
export type { Isolation, SessionOptions } from './session/session.ts';
export { RunSession } from './session/run-session.ts';
export type { Json } from './session/json.ts';
export type { CommitRequest, DocumentStore, Fence, OpenRequest, RunDocument } from './session/documents.ts';

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
  UnfencedRunError,
} from './errors.ts';
export type { Holder, LeaseErrorCode, LeaseLostOptions } from './errors.ts';
