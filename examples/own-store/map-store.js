/** A store of one's own: a Map, and a clock that is passed in. `map-store.test.js` holds it to the contract. */
import { StoreUnavailableError } from 'lessor';
import * as check from './check.js';

export class MapStore {
  durability = { survives: 'nothing', warnings: ['A Map ends with its process.'] };
  #rows = new Map(); // the newest lease of each run: kept after its release, since the next token must be higher
  #now;
  #closed = false;

  constructor(now) {
    this.#now = now;
  }

  async acquire(request, options) {
    this.#open(options);
    check.acquire(request);
    const { runId, workerId, acquisitionId, ttlSeconds, reacquire = 'extend' } = request;
    const row = this.#rows.get(runId);
    const now = this.#now();
    const lease = { runId, workerId, acquisitionId, ttlSeconds, expiresAt: now + ttlSeconds };
    if (row === undefined || row.ended || row.expiresAt <= now) {
      return this.#keep({ ...lease, fencingToken: (row?.fencingToken ?? 0) + 1, acquiredAt: now }, false);
    }
    const { fencingToken, acquiredAt, expiresAt } = row;
    if (row.workerId === workerId && (reacquire === 'extend' || row.acquisitionId === acquisitionId)) {
      return this.#keep({ ...lease, expiresAt: Math.max(expiresAt, lease.expiresAt), fencingToken, acquiredAt }, true);
    }
    return { status: 'held', workerId: row.workerId, fencingToken, retryAfterSeconds: expiresAt - now };
  }

  async renew(leases, ttlSeconds, options) {
    this.#open(options);
    check.renew(leases, ttlSeconds);
    const now = this.#now();
    return leases.map((lease) => {
      const row = this.#rows.get(lease.runId);
      const reason = lostReason(row, lease, now);
      if (reason !== null) return { status: 'lost', reason };
      row.expiresAt = Math.max(row.expiresAt, now + ttlSeconds);
      row.ttlSeconds = ttlSeconds;
      return { status: 'renewed', expiresAt: row.expiresAt };
    });
  }

  async release(lease, options) {
    this.#open(options);
    check.release(lease);
    const row = this.#rows.get(lease.runId);
    if (row === undefined || row.ended || !names({ fencingToken: row.fencingToken, ...lease }, row)) return false;
    row.ended = 'released';
    return true;
  }

  async revoke(runId, why, options) {
    this.#open(options);
    check.revoke(runId, why);
    const row = this.#rows.get(runId);
    if (row === undefined || row.ended) return null;
    Object.assign(row, { ended: 'revoked', revoked: { by: why.by, reason: why.reason, at: this.#now() } });
    return leaseOf(row);
  }

  async read(runId, options) {
    this.#open(options);
    check.name('runId', runId);
    return this.#rows.has(runId) ? recordOf(this.#rows.get(runId), this.#now()) : null;
  }

  async *list(query = {}, options) {
    this.#open(options);
    check.query(query);
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
    check.signal(options);
    options?.signal?.throwIfAborted();
  }

  #keep(row, extended) {
    this.#rows.set(row.runId, { ...row, ended: null, revoked: null });
    return { status: 'granted', lease: { ...leaseOf(row), acquisitionId: row.acquisitionId }, extended };
  }
}

function names(lease, row) {
  return ['runId', 'workerId', 'fencingToken', 'acquisitionId'].every((key) => lease[key] === row[key]);
}

function lostReason(row, lease, now) {
  if (row === undefined || row.fencingToken < lease.fencingToken) return 'unknown';
  if (!names(lease, row)) return 'superseded';
  return row.ended ?? (row.expiresAt <= now ? 'expired' : null);
}

function leaseOf({ runId, workerId, fencingToken, ttlSeconds, expiresAt }) {
  return { runId, workerId, leaseId: `${runId}:${workerId}:${fencingToken}`, fencingToken, ttlSeconds, expiresAt };
}

function recordOf({ runId, workerId, fencingToken, acquiredAt, expiresAt, ttlSeconds, ended, revoked }, now) {
  const remainingSeconds = ended ? 0 : Math.max(0, expiresAt - now);
  return {
    ...{ runId, workerId, fencingToken, acquiredAt, ttlSeconds, remainingSeconds, revoked, fence: fencingToken },
    state: ended ? 'free' : remainingSeconds > 0 ? 'held' : 'expired',
    expiresAt: ended ? null : expiresAt,
  };
}
