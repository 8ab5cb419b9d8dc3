import { RegistryCaller } from '../../machines/registry.caller.ts';
import type { Granted } from '../../machines/registry.events.ts';
import { registryLogic } from '../../machines/registry.logic.ts';
import { StoreUnavailableError } from '../errors.ts';
import { filterAhead, wantsRun } from '../inspect/inspect-leases.ts';
import type { Inspector } from '../inspect/quiet-inspector.ts';
import { quietInspector } from '../inspect/quiet-inspector.ts';
import type { LeaseRef, StoredLease } from '../lease.ts';
import { checkFunction } from '../options.ts';
import type { CommitRequest, OpenRequest, RunDocument } from '../session/documents.ts';
import type { FencedStore } from '../session/fenced-store.ts';
import type { Session, SessionOptions } from '../session/session.ts';
import { openSession } from '../session/session.ts';
import type { NewestLease } from './lost-reason.ts';
import { lostReason, names } from './lost-reason.ts';
import { forwardClock, monotonicNow } from './memory-clock.ts';
import { MemoryDocuments } from './memory-documents.ts';
import type { MemoryRow } from './memory-rows.ts';
import { byBytes, recordOf } from './memory-rows.ts';
import { RunChanges } from './run-changes.ts';
import {
  checkAcquireRequest,
  checkListQuery,
  checkReadRequest,
  checkReleaseRequest,
  checkRenewRequest,
  checkRevokeRequest,
} from './requests.ts';
import type {
  AcquireRequest,
  AcquireResult,
  CallOptions,
  LeaseRecord,
  ListQuery,
  ReleaseRequest,
  RenewResult,
  RevokedLease,
  RevokeReason,
  RunChange,
} from './store.ts';

/** How a memory store is made. */
export interface MemoryStoreOptions {
  /**
   * The store's clock, in seconds. One that goes back counts as the latest seen.
   *
   * @default the process's monotonic clock, counted from the epoch
   */
  readonly now?: (() => number) | undefined;
  /** Gets xstate's inspection events of the registry and its leases. */
  readonly inspect?: Inspector | undefined;
}

/**
 * A store in the memory of this process, on the registry's own machines: for tests and single processes. It remembers the
 * fence of every run it has seen. One counter gives the tokens of all runs.
 */
export class MemoryStore implements FencedStore {
  readonly durability = {
    survives: 'nothing',
    warnings: ['Leases and tokens end with the process.'],
  } as const;

  readonly #now: () => number;
  readonly #caller: RegistryCaller;
  readonly #rows = new Map<string, MemoryRow>();
  readonly #changes = new RunChanges();
  readonly #documents = new MemoryDocuments((runId) => this.#newestLease(runId));
  #closed = false;

  constructor({ now = monotonicNow, inspect }: MemoryStoreOptions = {}) {
    checkFunction('now', now);
    this.#now = forwardClock(now);
    // The rows have to agree with the registry, so what others send to its actor changes nothing.
    this.#caller = new RegistryCaller(registryLogic, {
      id: 'registry',
      input: {
        ttlSeconds: 30,
        reacquire: 'extend',
        watched: (runId) => inspect !== undefined && wantsRun(inspect, runId),
      },
      ...(inspect && { inspect: quietInspector(inspect) }),
    });
    if (inspect) filterAhead(this.#caller.actor, inspect);
    this.#caller.actor.start();
  }

  async acquire(request: AcquireRequest, options?: CallOptions): Promise<AcquireResult> {
    checkAcquireRequest(request, options);
    this.#checkOpen(options);
    const { runId, workerId, acquisitionId, ttlSeconds, reacquire } = request;
    const now = this.#now();
    const answer = this.#caller.ask({
      type: 'lease.acquire',
      runId,
      workerId,
      acquisitionId,
      ttlSeconds,
      reacquire,
      now,
    });
    switch (answer.type) {
      case 'lease.granted':
        return { status: 'granted', lease: this.#keep(answer, request, now), extended: answer.extended };
      case 'lease.refused': {
        const { workerId: holder, fencingToken, expiresAt } = answer.lease;
        return { status: 'held', workerId: holder, fencingToken, retryAfterSeconds: Math.max(0, expiresAt - now) };
      }
      default:
        throw new RangeError('No fencing token is left after 2^53 - 1');
    }
  }

  async renew(leases: readonly LeaseRef[], ttlSeconds: number, options?: CallOptions): Promise<readonly RenewResult[]> {
    checkRenewRequest(leases, ttlSeconds, options);
    this.#checkOpen(options);
    const now = this.#now();
    return leases.map((lease) => this.#renewOne(lease, ttlSeconds, now));
  }

  async release(lease: ReleaseRequest, options?: CallOptions): Promise<boolean> {
    checkReleaseRequest(lease, options);
    this.#checkOpen(options);
    const row = this.#rows.get(lease.runId);
    if (row === undefined || !names(lease, row.lease) || row.released) return false;
    this.#free(row);
    return true;
  }

  async revoke(runId: string, why: RevokeReason, options?: CallOptions): Promise<RevokedLease | null> {
    checkRevokeRequest(runId, why, options);
    this.#checkOpen(options);
    const row = this.#rows.get(runId);
    if (row === undefined || row.released) return null;
    const at = this.#now();
    this.#free(row);
    row.revoked = { by: why.by, reason: why.reason, at };
    const { acquisitionId: _, ...lease } = row.lease;
    return lease;
  }

  async read(runId: string, options?: CallOptions): Promise<LeaseRecord | null> {
    checkReadRequest(runId, options);
    this.#checkOpen(options);
    const row = this.#rows.get(runId);
    return row ? recordOf(row, this.#now()) : null;
  }

  async *list(query: ListQuery = {}, options?: CallOptions): AsyncIterableIterator<LeaseRecord> {
    checkListQuery(query, options);
    this.#checkOpen(options);
    const { prefix = '', workerId, state } = query;
    const runIds = [...this.#rows.keys()].filter((runId) => runId.startsWith(prefix)).toSorted(byBytes);
    for (const runId of runIds) {
      this.#checkOpen(options);
      const record = recordOf(this.#rows.get(runId)!, this.#now());
      if ((workerId ?? record.workerId) === record.workerId && (state ?? record.state) === record.state) yield record;
    }
  }

  async currentFence(runId: string, options?: CallOptions): Promise<number> {
    checkReadRequest(runId, options);
    this.#checkOpen(options);
    return this.#rows.get(runId)?.lease.fencingToken ?? 0;
  }

  changes(runIds: readonly string[], { signal }: { readonly signal: AbortSignal }): AsyncIterable<RunChange> {
    this.#checkOpen();
    return this.#changes.of(runIds, signal);
  }

  session(options: SessionOptions): Promise<Session> {
    return openSession(this, options);
  }

  async openDocuments(request: OpenRequest, options?: CallOptions): Promise<readonly RunDocument[]> {
    this.#checkOpen(options);
    return this.#documents.open(request);
  }

  async commitDocuments(request: CommitRequest, options?: CallOptions): Promise<void> {
    this.#checkOpen(options);
    this.#documents.commit(request);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#changes.close();
    this.#caller.actor.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #checkOpen(options?: CallOptions): void {
    if (this.#closed) throw new StoreUnavailableError('The memory store was closed');
    options?.signal?.throwIfAborted();
  }

  /** The row of a grant. A worker's own live lease, extended, keeps the moment at which it began. */
  #keep({ lease, extended }: Granted, { acquisitionId, ttlSeconds }: AcquireRequest, now: number): StoredLease {
    const stored: StoredLease = { ...lease, acquisitionId, ttlSeconds };
    const acquiredAt = extended ? this.#rows.get(lease.runId)!.acquiredAt : now;
    this.#rows.set(lease.runId, { lease: stored, acquiredAt, released: false, revoked: null });
    this.#changes.tell(lease.runId);
    return { ...stored };
  }

  #renewOne(lease: LeaseRef, ttlSeconds: number, now: number): RenewResult {
    const row = this.#rows.get(lease.runId);
    if (row !== undefined && names(lease, row.lease)) {
      const { leaseId, fencingToken, acquisitionId } = row.lease;
      const answer = this.#caller.ask({
        type: 'lease.heartbeat',
        leaseId,
        fencingToken,
        acquisitionId,
        ttlSeconds,
        now,
      });
      if (answer.type === 'lease.renewed') {
        row.lease = { ...row.lease, expiresAt: answer.lease.expiresAt, ttlSeconds };
        return { status: 'renewed', expiresAt: answer.lease.expiresAt };
      }
    }
    return { status: 'lost', reason: lostReason(lease, this.#newestLease(lease.runId)) };
  }

  #newestLease(runId: string): NewestLease | undefined {
    const row = this.#rows.get(runId);
    return row && { ...row.lease, released: row.released, revoked: row.revoked !== null };
  }

  #free(row: MemoryRow): void {
    const { runId, leaseId, fencingToken, acquisitionId } = row.lease;
    this.#caller.ask({ type: 'lease.release', leaseId, fencingToken, acquisitionId });
    row.released = true;
    this.#changes.tell(runId);
  }
}
