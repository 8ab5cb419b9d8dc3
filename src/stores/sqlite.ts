import type { LeaseRef } from '../lease.ts';
import { checkDuration, checkObject } from '../options.ts';
import type { FenceTableColumns } from './fence-table.ts';
import { names } from './lost-reason.ts';
import {
  checkAcquireRequest,
  checkListQuery,
  checkReadRequest,
  checkReleaseRequest,
  checkRenewRequest,
  checkRevokeRequest,
  nextFencingToken,
} from './requests.ts';
import type { CommitRequest, OpenRequest, RunDocument } from '../session/documents.ts';
import type { FencedStore } from '../session/fenced-store.ts';
import type { Session, SessionOptions } from '../session/session.ts';
import { openSession } from '../session/session.ts';
import { connect } from './sqlite/connect.ts';
import { SqliteDocuments } from './sqlite/documents.ts';
import { SqliteFences } from './sqlite/fences.ts';
import type { Look, SqliteConnection } from './sqlite/connection.ts';
import { checkSqliteDatabase, type SqliteDatabase } from './sqlite/database.ts';
import type { SqliteStoreOptions } from './sqlite/options.ts';
import type { CurrentRow, LeaseRow, RecordRow } from './sqlite/rows.ts';
import { expiryAfter, isCurrentRow, isLiveRow, leaseOf, reasonOf, recordOf, refusalOf } from './sqlite/rows.ts';
import type { SqliteStatements } from './sqlite/statements.ts';
import type {
  AcquireRequest,
  AcquireResult,
  CallOptions,
  Durability,
  HeldResult,
  LeaseRecord,
  ListQuery,
  ReleaseRequest,
  RenewResult,
  RevokedLease,
  RevokeReason,
} from './store.ts';

export type { SqliteStoreOptions } from './sqlite/options.ts';

/** Records that are read at once by `list`. */
const PAGE_ROWS = 500;

/**
 * Leases in a SQLite file, shared by any number of processes of one machine. Its clock is the machine's, as SQLite reads
 * it, in whole milliseconds. Runs are listed in the order of their bytes in UTF-8.
 *
 * It cannot push: a file tells nobody that it changed, and looking costs as much as asking. So there is no `changes`.
 */
export class SqliteStore implements FencedStore {
  readonly durability: Durability;
  readonly #connection: SqliteConnection;
  readonly #fences: SqliteFences;
  readonly #statements: SqliteStatements;
  readonly #documents: SqliteDocuments;

  private constructor(connection: SqliteConnection, database: SqliteDatabase) {
    this.durability = connection.durability;
    this.#connection = connection;
    this.#statements = connection.statements;
    this.#documents = new SqliteDocuments(connection);
    this.#fences = new SqliteFences(connection, database);
  }

  /**
   * Opens the leases in the connection's file, making the tables where there are none.
   *
   * @throws StoreUnavailableError when the file cannot be used, or was written by a newer version.
   * @throws StateLostError when the file has some of the tables only: it would count from 1 again.
   */
  static async open(options: SqliteStoreOptions): Promise<SqliteStore> {
    checkObject('options', options);
    const { database, busyTimeoutSeconds = 5, ownsDatabase = false } = options;
    checkSqliteDatabase('database', database);
    checkDuration('busyTimeoutSeconds', busyTimeoutSeconds);
    return new SqliteStore(await connect({ database, busyTimeoutSeconds, ownsDatabase }), database);
  }

  async acquire(request: AcquireRequest, options?: CallOptions): Promise<AcquireResult> {
    checkAcquireRequest(request, options);
    const { runId } = request;
    // A crowd that waits for a run does not line up behind a writer to be told that it is held.
    const peek = (): HeldResult | undefined => refusalOf(this.#connection.look(runId), request);
    return this.#connection.write<AcquireResult>(() => this.#acquire(request), options, peek);
  }

  async renew(leases: readonly LeaseRef[], ttlSeconds: number, options?: CallOptions): Promise<readonly RenewResult[]> {
    checkRenewRequest(leases, ttlSeconds, options);
    if (leases.length === 0) {
      this.#connection.checkOpen();
      return [];
    }
    return this.#connection.write(() => this.#renew(leases, ttlSeconds), options);
  }

  async release(lease: ReleaseRequest, options?: CallOptions): Promise<boolean> {
    checkReleaseRequest(lease, options);
    const { runId, workerId, acquisitionId, fencingToken = null } = lease;
    return this.#connection.write(() => {
      const { marker } = this.#connection;
      const { changes } = this.#statements.release.run(runId, workerId, acquisitionId, fencingToken, marker);
      if (Number(changes) > 0) return true;
      // Perhaps for the marker's sake, which is looked at with the time.
      this.#connection.now();
      return false;
    }, options);
  }

  async revoke(runId: string, why: RevokeReason, options?: CallOptions): Promise<RevokedLease | null> {
    checkRevokeRequest(runId, why, options);
    return this.#connection.write(() => {
      const { row, now } = this.#connection.look(runId);
      if (!isCurrentRow(row)) return null;
      this.#statements.revoke.run(why.by, why.reason, now, runId);
      const { acquisitionId: _, ...lease } = leaseOf(row, row.expiresAt, row.ttlSeconds);
      return lease;
    }, options);
  }

  async read(runId: string, options?: CallOptions): Promise<LeaseRecord | null> {
    checkReadRequest(runId, options);
    return this.#connection.read(() => {
      const { row, now } = this.#connection.look(runId);
      return row === undefined ? null : recordOf(row, now);
    }, options);
  }

  async *list(query: ListQuery = {}, options?: CallOptions): AsyncIterableIterator<LeaseRecord> {
    checkListQuery(query, options);
    const { prefix = '', workerId, state } = query;
    let page = await this.#page(this.#statements.recordsFrom, prefix, options);
    while (page.length > 0) {
      for (const record of page) {
        // Runs with the prefix stand together, and nothing in it is a pattern.
        if (!record.runId.startsWith(prefix)) return;
        if ((workerId ?? record.workerId) === record.workerId && (state ?? record.state) === record.state) yield record;
      }
      page = await this.#page(this.#statements.recordsAfter, page.at(-1)!.runId, options);
    }
  }

  async currentFence(runId: string, options?: CallOptions): Promise<number> {
    checkReadRequest(runId, options);
    return this.#connection.read(() => this.#connection.look(runId).fence, options);
  }

  /** Opens a fenced read-modify-write over runs' documents, which are kept in the leases' file. See {@link openSession}. */
  session(options: SessionOptions): Promise<Session> {
    return openSession(this, options);
  }

  openDocuments(request: OpenRequest, options?: CallOptions): Promise<readonly RunDocument[]> {
    return this.#documents.openDocuments(request, options);
  }

  commitDocuments(request: CommitRequest, options?: CallOptions): Promise<void> {
    return this.#documents.commitDocuments(request, options);
  }

  /**
   * Makes a transaction of the user's own, on the leases' file, obey the lease: to be its first statement. It acts and throws
   * at once, without a promise, so that it also works inside `database.transaction(...)` of a driver.
   *
   * @param tx - the user's own connection, of any driver that this store takes, inside a transaction.
   * @throws LeaseLostError when the lease is not its run's newest, or was released or revoked. Roll back.
   * @throws ConflictError when the transaction has read before another one wrote: begin anew, with BEGIN IMMEDIATE.
   * @throws StoreUnavailableError when the file stays locked for longer than the connection's own `busy_timeout`.
   * @throws TypeError outside a transaction, or for another file.
   */
  fence(tx: SqliteDatabase, lease: LeaseRef): void {
    this.#fences.fence(tx, lease);
  }

  /**
   * Fences a table of the user's in the leases' file, see {@link fenceTableSql}. Repeating it is harmless.
   *
   * @throws RangeError when there is no such table, or it has no such columns.
   */
  fenceTable(table: string, columns: FenceTableColumns, options?: CallOptions): Promise<void> {
    return this.#fences.fenceTable(table, columns, options);
  }

  /** Takes the fence from the table again. Harmless when it has none. */
  unfenceTable(table: string, options?: CallOptions): Promise<void> {
    return this.#fences.unfenceTable(table, options);
  }

  async close(): Promise<void> {
    this.#connection.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #acquire(request: AcquireRequest): AcquireResult {
    const look = this.#connection.look(request.runId);
    const held = refusalOf(look, request);
    if (held) return held;
    return isLiveRow(look.row, look.now) ? this.#extend(look.row, request, look.now) : this.#grant(look, request);
  }

  #grant({ fence, now }: Look, { runId, workerId, acquisitionId, ttlSeconds }: AcquireRequest): AcquireResult {
    const fencingToken = nextFencingToken(fence);
    const expiresAt = expiryAfter(now, ttlSeconds);
    this.#statements.keep.run(runId, workerId, fencingToken, acquisitionId, now, expiresAt, ttlSeconds);
    const lease = leaseOf({ runId, workerId, fencingToken, acquisitionId }, expiresAt, ttlSeconds);
    return { status: 'granted', lease, extended: false };
  }

  #extend(row: CurrentRow, { acquisitionId, ttlSeconds }: AcquireRequest, now: number): AcquireResult {
    const expiresAt = Math.max(row.expiresAt, expiryAfter(now, ttlSeconds));
    this.#statements.extend.run(acquisitionId, expiresAt, ttlSeconds, row.runId);
    this.#statements.moveFence.run(acquisitionId, row.runId, row.fencingToken);
    const lease = leaseOf({ ...row, acquisitionId }, expiresAt, ttlSeconds);
    return { status: 'granted', lease, extended: true };
  }

  #renew(leases: readonly LeaseRef[], ttlSeconds: number): readonly RenewResult[] {
    const now = this.#connection.now();
    const runIds = [...new Set(leases.map(({ runId }) => runId))];
    const rows = new Map(
      (this.#statements.rows.all(JSON.stringify(runIds)) as LeaseRow[]).map((row) => [row.runId, row]),
    );
    const expiry = expiryAfter(now, ttlSeconds);
    const renewed = new Set<string>();
    const results = leases.map((lease): RenewResult => {
      const row = rows.get(lease.runId);
      if (!isLiveRow(row, now) || !names(lease, row)) {
        return { status: 'lost', reason: reasonOf(lease, row) };
      }
      renewed.add(lease.runId);
      return { status: 'renewed', expiresAt: Math.max(row.expiresAt, expiry) };
    });
    if (renewed.size > 0) this.#statements.renew.run(expiry, ttlSeconds, JSON.stringify([...renewed]));
    return results;
  }

  #page(statement: SqliteStatements['recordsFrom'], runId: string, options?: CallOptions): Promise<LeaseRecord[]> {
    return this.#connection.read(() => {
      const now = this.#connection.now();
      return (statement.all(runId, PAGE_ROWS) as RecordRow[]).map((row) => recordOf(row, now));
    }, options);
  }
}
