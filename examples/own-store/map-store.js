/** A store of one's own: a Map, and a clock that is passed in. `map-store.test.js` holds it to the contract. */
import { StoreUnavailableError } from 'lessor';
import * as rules from 'lessor/store';

export class MapStore {
  durability = { survives: 'nothing', warnings: ['A Map ends with its process.'] };
  #rows = new Map(); // the newest lease of each run: kept after its release, since the next token must be higher
  #now;
  #closed = false;

  constructor(now) {
    this.#now = now;
  }

  async acquire(request, options) {
    rules.checkAcquireRequest(request, options);
    this.#open(options);
    const { runId, workerId, acquisitionId, ttlSeconds, reacquire = 'extend' } = request;
    const row = this.#rows.get(runId);
    const now = this.#now();
    const lease = { runId, workerId, acquisitionId, ttlSeconds, expiresAt: now + ttlSeconds };
    if (row === undefined || row.released || rules.isExpired(row, now)) {
      return this.#keep({ ...lease, fencingToken: (row?.fencingToken ?? 0) + 1, acquiredAt: now }, false);
    }
    const { fencingToken, acquiredAt, expiresAt } = row;
    if (row.workerId === workerId && (reacquire === 'extend' || row.acquisitionId === acquisitionId)) {
      return this.#keep({ ...lease, expiresAt: Math.max(expiresAt, lease.expiresAt), fencingToken, acquiredAt }, true);
    }
    return { status: 'held', workerId: row.workerId, fencingToken, retryAfterSeconds: expiresAt - now };
  }

  async renew(leases, ttlSeconds, options) {
    rules.checkRenewRequest(leases, ttlSeconds, options);
    this.#open(options);
    const now = this.#now();
    return leases.map((lease) => {
      const row = this.#rows.get(lease.runId);
      if (row === undefined || row.released || !rules.names(lease, row) || rules.isExpired(row, now)) {
        return { status: 'lost', reason: rules.lostReason(lease, row) };
      }
      row.expiresAt = Math.max(row.expiresAt, now + ttlSeconds);
      row.ttlSeconds = ttlSeconds;
      return { status: 'renewed', expiresAt: row.expiresAt };
    });
  }

  async release(lease, options) {
    rules.checkReleaseRequest(lease, options);
    this.#open(options);
    const row = this.#rows.get(lease.runId);
    if (row === undefined || row.released || !rules.names(lease, row)) return false;
    row.released = true;
    return true;
  }

  async revoke(runId, why, options) {
    rules.checkRevokeRequest(runId, why, options);
    this.#open(options);
    const row = this.#rows.get(runId);
    if (row === undefined || row.released) return null;
    Object.assign(row, { released: true, revoked: { by: why.by, reason: why.reason, at: this.#now() } });
    return leaseOf(row);
  }

  async read(runId, options) {
    rules.checkReadRequest(runId, options);
    this.#open(options);
    return this.#rows.has(runId) ? recordOf(this.#rows.get(runId), this.#now()) : null;
  }

  async *list(query = {}, options) {
    rules.checkListQuery(query, options);
    this.#open(options);
    const { prefix = '', state, workerId } = query;
    const runIds = [...this.#rows.keys()].filter((runId) => runId.startsWith(prefix));
    for (const runId of runIds.sort((one, other) => (one < other ? -1 : 1))) {
      const record = recordOf(this.#rows.get(runId), this.#now());
      if ((state ?? record.state) === record.state && (workerId ?? record.workerId) === record.workerId) yield record;
    }
  }

  async currentFence(runId, options) {
    return (await this.read(runId, options))?.fence ?? 0;
  }

  async close() {
    this.#closed = true;
  }

  [Symbol.asyncDispose]() {
    return this.close();
  }

  #open(options) {
    if (this.#closed) throw new StoreUnavailableError('The store was closed');
    options?.signal?.throwIfAborted();
  }

  #keep(row, extended) {
    this.#rows.set(row.runId, { ...row, released: false, revoked: null });
    return { status: 'granted', lease: { ...leaseOf(row), acquisitionId: row.acquisitionId }, extended };
  }
}

function leaseOf({ runId, workerId, fencingToken, ttlSeconds, expiresAt }) {
  return {
    runId,
    workerId,
    leaseId: rules.leaseIdOf(runId, workerId, fencingToken),
    fencingToken,
    ttlSeconds,
    expiresAt,
  };
}

function recordOf({ runId, workerId, fencingToken, acquiredAt, expiresAt, ttlSeconds, released, revoked }, now) {
  const remainingSeconds = released ? 0 : Math.max(0, expiresAt - now);
  return {
    ...{ runId, workerId, fencingToken, acquiredAt, ttlSeconds, remainingSeconds, revoked, fence: fencingToken },
    state: released ? 'free' : remainingSeconds > 0 ? 'held' : 'expired',
    expiresAt: released ? null : expiresAt,
  };
}
