/** A store on a Map, right except for one fault. Small enough to see that each fault is the only one. */
import { StoreUnavailableError } from '../../src/errors.ts';
import type { LeaseRef, StoredLease } from '../../src/lease.ts';
import { lostReason } from '../../src/stores/lost-reason.ts';
import {
  checkAcquireRequest,
  checkListQuery,
  checkReadRequest,
  checkReleaseRequest,
  checkRenewRequest,
  checkRevokeRequest,
  nextFencingToken,
} from '../../src/stores/requests.ts';
import type {
  AcquireRequest,
  AcquireResult,
  CallOptions,
  LeaseRecord,
  LeaseStore,
  ListQuery,
  ReleaseRequest,
  RenewResult,
  RevokedLease,
  RevokeReason,
} from '../../src/stores/store.ts';
import type { Fault } from './planted-faults.ts';

interface Row {
  lease: StoredLease;
  acquiredAt: number;
  released: boolean;
  revoked: LeaseRecord['revoked'];
  readonly order: number;
}

export class WrongStore implements LeaseStore {
  readonly durability = { survives: 'nothing', warnings: ['It is only a Map.'] } as const;
  readonly #fault: Fault;
  readonly #now: () => number;
  readonly #rows: Map<string, Row>;
  #closed = false;

  constructor(fault: Fault, now: () => number, rows = new Map<string, Row>()) {
    this.#fault = fault;
    this.#now = now;
    this.#rows = rows;
  }

  /** Another store over the same data. */
  another(): WrongStore {
    if (this.#has('counts anew in another process')) {
      for (const [key, { released }] of this.#rows) if (released) this.#rows.delete(key);
    }
    return new WrongStore(this.#fault, this.#now, this.#has('keeps its leases to itself') ? new Map() : this.#rows);
  }

  /** Goes on without its data, as if the server were gone. */
  cutOff(): void {
    this.#closed = !this.#has('answers as if free when it cannot be asked');
  }

  plantToken(runId: string, fencingToken: number): void {
    const row = this.#rows.get(this.#key(runId))!;
    row.lease = { ...row.lease, fencingToken };
  }

  async acquire(request: AcquireRequest, options?: CallOptions): Promise<AcquireResult> {
    if (this.#has('checks after it has changed something') && typeof request?.runId === 'string')
      this.#burnToken(request);
    this.#check(() => checkAcquireRequest(request, options), options);
    const { runId, workerId, acquisitionId, reacquire = 'extend' } = request;
    const key = this.#key(runId);
    const row = this.#rows.get(key);
    if (this.#has('checks, waits, and then writes')) await Promise.resolve();
    const now = this.#now();
    if (row === undefined || row.released || this.#expired(row, request) || this.#has('grants always')) {
      const result = this.#grant(request, row);
      if (!this.#has('calls an outcome that it cannot know unavailable')) return result;
      await Promise.resolve();
      if (options?.signal?.aborted) throw new StoreUnavailableError('The caller gave up');
      return result;
    }
    const repeats = row.lease.acquisitionId === acquisitionId;
    const mine = row.lease.workerId === workerId;
    const foreign = this.#has('gives another worker the lease of a repeated acquisition id') && repeats;
    const extend = reacquire === 'extend' || this.#has('ignores `refuse`');
    const same = repeats && !this.#has('takes a repeated acquire for contention');
    if ((mine && (extend ? !repeats || same : same)) || foreign) return this.#extend(request, row, now);
    if (this.#has('uses a token on a refusal')) row.lease = { ...row.lease, fencingToken: row.lease.fencingToken + 1 };
    const { fencingToken, expiresAt, workerId: holder } = row.lease;
    return { status: 'held', workerId: holder, fencingToken, retryAfterSeconds: Math.max(0, expiresAt - now) };
  }

  async renew(leases: readonly LeaseRef[], ttlSeconds: number, options?: CallOptions): Promise<readonly RenewResult[]> {
    this.#check(() => checkRenewRequest(leases, ttlSeconds, options), options);
    const asked = this.#has('drops the answers for repeated references')
      ? leases.filter((lease, index) => leases.indexOf(lease) === index)
      : leases;
    const results = asked.map((lease) => this.#renewOne(lease, ttlSeconds));
    return this.#has('answers renewals out of order') ? results.toReversed() : results;
  }

  async release(lease: ReleaseRequest, options?: CallOptions): Promise<boolean> {
    this.#check(() => checkReleaseRequest(lease, options), options);
    const row = this.#rows.get(this.#key(lease.runId));
    if (row === undefined || row.released || !this.#mayRelease(row, lease)) return false;
    row.released = true;
    if (this.#has('forgets the token on release')) row.lease = { ...row.lease, fencingToken: 0 };
    if (this.#has('forgets a released run')) this.#rows.delete(this.#key(lease.runId));
    return true;
  }

  async revoke(runId: string, why: RevokeReason, options?: CallOptions): Promise<RevokedLease | null> {
    this.#check(() => checkRevokeRequest(runId, why, options), options);
    const row = this.#rows.get(this.#key(runId));
    if (row === undefined || row.released) return null;
    row.released = true;
    if (!this.#has('forgets who revoked')) row.revoked = { ...why, at: this.#now() };
    const { acquisitionId: _, ...revoked } = row.lease;
    return revoked;
  }

  async read(runId: string, options?: CallOptions): Promise<LeaseRecord | null> {
    this.#check(() => checkReadRequest(runId, options), options);
    const row = this.#rows.get(this.#key(runId));
    return row ? this.#record(row) : null;
  }

  async *list(query: ListQuery = {}, options?: CallOptions): AsyncIterable<LeaseRecord> {
    this.#check(() => checkListQuery(query, options), options);
    const { prefix = '', state, workerId } = query;
    const pattern = new RegExp(`^${escapePattern(prefix)}`.replaceAll('_', '.'), 's');
    const rows = [...this.#rows.values()].filter(({ lease }) =>
      this.#has('matches a prefix as a pattern') ? pattern.test(lease.runId) : lease.runId.startsWith(prefix),
    );
    const ordered = this.#has('lists in the order of the first lease')
      ? rows.toSorted((one, other) => one.order - other.order)
      : rows.toSorted((one, other) => (one.lease.runId < other.lease.runId ? -1 : 1));
    for (const record of ordered.map((row) => this.#record(row))) {
      if ((state ?? record.state) === record.state && (workerId ?? record.workerId) === record.workerId) yield record;
    }
  }

  async currentFence(runId: string, options?: CallOptions): Promise<number> {
    this.#check(() => checkReadRequest(runId, options), options);
    return this.#rows.get(this.#key(runId))?.lease.fencingToken ?? 0;
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #has(fault: Fault): boolean {
    return this.#fault === fault;
  }

  #check(check: () => void, options: CallOptions | undefined): void {
    if (this.#closed && !this.#has('answers after it was closed'))
      throw new StoreUnavailableError('The store was closed');
    if (!this.#has('takes any argument')) check();
    if (!this.#has('sends what was aborted before')) options?.signal?.throwIfAborted();
  }

  #burnToken({ runId }: AcquireRequest): void {
    const row = this.#rows.get(this.#key(runId));
    if (row) row.lease = { ...row.lease, fencingToken: row.lease.fencingToken + 1 };
    else this.#rows.set(this.#key(runId), { ...PLACEHOLDER, lease: { ...PLACEHOLDER.lease, runId } });
  }

  #key(runId: string): string {
    if (this.#has('trims names')) return runId.trim();
    if (this.#has('ignores the case of names')) return runId.toLowerCase();
    return this.#has('cuts names short') ? runId.slice(0, 255) : runId;
  }

  #expired({ lease }: Row, contender?: AcquireRequest): boolean {
    const now = this.#now();
    if (this.#has('expiry is exclusive')) return lease.expiresAt < now;
    if (this.#has('expires early')) return lease.expiresAt - 0.05 <= now;
    if (contender && this.#has("judges expiry by the contender's ttl")) {
      return lease.expiresAt - lease.ttlSeconds + contender.ttlSeconds <= now;
    }
    return lease.expiresAt <= now;
  }

  #grant({ runId, workerId, acquisitionId, ttlSeconds }: AcquireRequest, before: Row | undefined): AcquireResult {
    const now = this.#now();
    const fencingToken = this.#nextToken(workerId, before);
    const lives = this.#has('rounds the ttl down to whole seconds') ? Math.max(1, Math.floor(ttlSeconds)) : ttlSeconds;
    const leaseId = `${runId}:${workerId}:${fencingToken}`;
    const lease = { runId, workerId, leaseId, fencingToken, acquisitionId, ttlSeconds, expiresAt: now + lives };
    const order = before?.order ?? this.#rows.size;
    this.#rows.set(this.#key(runId), { lease, acquiredAt: now, released: false, revoked: null, order });
    return { status: 'granted', lease: { ...lease }, extended: false };
  }

  #nextToken(workerId: string, before: Row | undefined): number {
    if (before === undefined) return 1;
    const { lease, released } = before;
    if (released) return nextFencingToken(lease.fencingToken);
    if (this.#has('forgets the token at expiry')) return 1;
    if (this.#has('the same worker keeps its token after expiry') && workerId === lease.workerId)
      return lease.fencingToken;
    return nextFencingToken(lease.fencingToken);
  }

  #extend({ workerId, acquisitionId, ttlSeconds }: AcquireRequest, row: Row, now: number): AcquireResult {
    const { lease } = row;
    const until = now + ttlSeconds;
    row.lease = {
      ...lease,
      workerId,
      acquisitionId: this.#has('keeps the acquisition id on a re-acquire') ? lease.acquisitionId : acquisitionId,
      fencingToken: lease.fencingToken + (this.#has('gives a new token on a re-acquire') ? 1 : 0),
      ttlSeconds,
      expiresAt: this.#has('shortens on a re-acquire') ? until : Math.max(lease.expiresAt, until),
    };
    return { status: 'granted', lease: { ...row.lease, acquisitionId }, extended: true };
  }

  #renewOne(ref: LeaseRef, ttlSeconds: number): RenewResult {
    const row = this.#rows.get(this.#key(ref.runId));
    if (row === undefined) return { status: 'lost', reason: 'unknown' };
    const { lease } = row;
    const ended =
      (row.released && !(row.revoked && this.#has('a revoked lease can be renewed'))) ||
      (this.#expired(row) && !this.#has('revives an expired lease'));
    if (ended || !this.#mayRenew(lease, ref)) {
      return { status: 'lost', reason: lostReason(ref, { ...lease, released: row.released, revoked: !!row.revoked }) };
    }
    const until = this.#now() + ttlSeconds;
    const expiresAt = this.#has('shortens on renewal') ? until : Math.max(lease.expiresAt, until);
    if (!this.#has('does not extend on renewal')) row.lease = { ...lease, expiresAt, ttlSeconds };
    return { status: 'renewed', expiresAt };
  }

  #mayRenew(lease: StoredLease, ref: LeaseRef): boolean {
    if (this.#has('joins names without escaping')) {
      return [...this.#rows.values()].some(({ lease: { leaseId } }) => leaseId === leaseIdOf(ref));
    }
    return (
      (lease.workerId === ref.workerId || this.#has('ignores the worker in a renewal')) &&
      (lease.fencingToken === ref.fencingToken || this.#has('ignores the token in a renewal')) &&
      (lease.acquisitionId === ref.acquisitionId || this.#has('ignores the acquisition id in a renewal'))
    );
  }

  #mayRelease(row: Row, ref: ReleaseRequest): boolean {
    const { lease } = row;
    if (this.#has('frees the run on any release')) return true;
    if (this.#has('refuses a release past expiry') && this.#expired(row)) return false;
    if (this.#has('releases by worker id alone')) return lease.workerId === ref.workerId;
    const token = (ref.fencingToken ?? lease.fencingToken) === lease.fencingToken;
    if (this.#has('releases by token alone')) return token;
    return token && lease.workerId === ref.workerId && lease.acquisitionId === ref.acquisitionId;
  }

  #record(row: Row): LeaseRecord {
    const { lease, acquiredAt, released, revoked } = row;
    const { runId, workerId, fencingToken, ttlSeconds, acquisitionId } = lease;
    const expiresAt = lease.expiresAt - (this.#has('tells readers an expiry half a millisecond early') ? 0.0005 : 0);
    const expired = this.#expired(row);
    return {
      ...(this.#has('tells the acquisition id to readers') && { acquisitionId }),
      ...{ runId, workerId, fencingToken, acquiredAt, ttlSeconds, revoked, fence: fencingToken },
      state: released ? 'free' : expired ? 'expired' : 'held',
      expiresAt: released ? null : expiresAt,
      remainingSeconds: released || expired ? 0 : expiresAt - this.#now(),
    };
  }
}

const PLACEHOLDER: Row = {
  lease: { runId: '', workerId: '-', leaseId: '', fencingToken: 1, acquisitionId: '-', ttlSeconds: 1, expiresAt: 0 },
  acquiredAt: 0,
  released: true,
  revoked: null,
  order: 0,
};

function leaseIdOf({ runId, workerId, fencingToken }: LeaseRef): string {
  return `${runId}:${workerId}:${fencingToken}`;
}

/** Escapes what a regular expression would read, but for `_`, which the pattern of a database takes for any character. */
function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
