import { StateLostError } from '../errors.ts';
import type { LeaseRef } from '../lease.ts';
import { toFencingToken } from '../options.ts';
import type { CommitRequest, OpenRequest, RunDocument } from '../session/documents.ts';
import type { FencedStore } from '../session/fenced-store.ts';
import { openSession, type Session, type SessionOptions } from '../session/session.ts';
import { checkFenceTable, type FenceTableColumns } from './fence-table.ts';
import type { Caller, Row, Rows, Statement } from './postgres/caller.ts';
import type { OpenedPool } from './postgres/client.ts';
import { commitValues, documentsOf, openValues, toFenceError } from './postgres/documents.ts';
import { otherHome } from './postgres/errors.ts';
import { checkTransaction, fenceTransaction, type PostgresTransaction } from './postgres/fence.ts';
import { define, fenceTableSql, unfenceTableSql } from './postgres/fence-table.ts';
import { acquireTurns, releaseTurns } from './postgres/grants.ts';
import { PostgresListener } from './postgres/listener.ts';
import { openPostgres, type OpenPostgres, type PostgresStoreOptions } from './postgres/open.ts';
import { afterPrefix, columnsOf, recordOf, revokedOf } from './postgres/rows.ts';
import { lockWaitOf, statementsOf, type Statements } from './postgres/statements.ts';
import { renewalsOf } from './postgres/renewals.ts';
import { checkTransactionCall, runTransaction } from './postgres/transaction.ts';
import type { TransactionOptions, TransactionPool, TransactionWork } from './postgres/transaction.ts';
import {
  checkAcquireRequest,
  checkLeaseRef,
  checkListQuery,
  checkReadRequest,
  checkReleaseRequest,
  checkRenewRequest,
  checkRevokeRequest,
} from './requests.ts';
import type { Turns } from './turns.ts';
import type {
  AcquireRequest,
  AcquireResult,
  CallOptions,
  Durability,
  LeaseRecord,
  ListQuery,
  ReleaseRequest,
  RenewResult,
  RevokedLease,
  RevokeReason,
  RunChange,
} from './store.ts';

export { migratePostgres } from './postgres/migrate.ts';
export type { PostgresTransaction } from './postgres/fence.ts';
export type { PostgresStoreOptions } from './postgres/open.ts';
export type { TransactionOptions, TransactionPool, TransactionWork } from './postgres/transaction.ts';

/**
 * Leases in PostgreSQL, in a schema that `migratePostgres` has installed.
 *
 * The server's clock decides. Every call is one statement in one round trip, which many acquires or releases of one moment
 * share. It decides on the primary, and leaves nothing behind in the session, so that it works through a pooler in
 * transaction mode. A grant is on disk before it is returned, whatever `synchronous_commit` the role has.
 */
export class PostgresStore implements FencedStore {
  readonly durability: Durability;
  readonly #opened: OpenedPool;
  readonly #caller: Caller;
  readonly #home: OpenPostgres['home'];
  readonly #statements: Statements;
  readonly #acquires: Turns<AcquireRequest, AcquireResult>;
  readonly #releases: Turns<ReleaseRequest, boolean>;
  readonly #listener: PostgresListener;
  #lost: StateLostError | undefined;
  #closing: Promise<void> | undefined;

  private constructor({ opened, caller, home, durability, requestTimeoutSeconds, listen }: OpenPostgres) {
    this.durability = durability;
    this.#opened = opened;
    this.#caller = caller;
    this.#home = home;
    this.#statements = statementsOf({ ...home, lockWait: lockWaitOf(requestTimeoutSeconds) });
    const ask = (...call: [Statement, unknown[], CallOptions | undefined]) => this.#ask(...call);
    this.#acquires = acquireTurns(this.#statements, ask);
    this.#releases = releaseTurns(this.#statements, ask);
    this.#listener = new PostgresListener(opened.pool, home.schema, { silent: !listen });
  }

  /**
   * Opens the leases in the schema.
   *
   * @throws TypeError when the client is of another kind, or a setting is wrong.
   * @throws StoreUnavailableError when the server cannot be asked, is a standby or read-only, or has no such schema.
   * @example
   * await migratePostgres({ url: 'postgres://127.0.0.1/app' }); // once, at deployment
   * await using store = await PostgresStore.open({ url: 'postgres://127.0.0.1/app' }); // or { pool: new pg.Pool(...) }
   */
  static async open(options: PostgresStoreOptions): Promise<PostgresStore> {
    return new PostgresStore(await openPostgres(options));
  }

  async acquire(request: AcquireRequest, options?: CallOptions): Promise<AcquireResult> {
    checkAcquireRequest(request, options);
    return this.#acquires.ask(request, options);
  }

  async renew(leases: readonly LeaseRef[], ttlSeconds: number, options?: CallOptions): Promise<readonly RenewResult[]> {
    checkRenewRequest(leases, ttlSeconds, options);
    this.#caller.checkOpen();
    if (leases.length === 0) return [];
    return renewalsOf(leases, (some, isPatient) => {
      const values = columnsOf(some, ['runId', 'workerId', 'fencingToken', 'acquisitionId']);
      return this.#ask(this.#statements.renew, [...values, ttlSeconds, isPatient], options);
    });
  }

  async release(lease: ReleaseRequest, options?: CallOptions): Promise<boolean> {
    checkReleaseRequest(lease, options);
    return this.#releases.ask(lease, options);
  }

  async revoke(runId: string, why: RevokeReason, options?: CallOptions): Promise<RevokedLease | null> {
    checkRevokeRequest(runId, why, options);
    return revokedOf(runId, (await this.#ask(this.#statements.revoke, [runId, why.by, why.reason], options))[0]);
  }

  async read(runId: string, options?: CallOptions): Promise<LeaseRecord | null> {
    checkReadRequest(runId, options);
    const [row] = await this.#ask(this.#statements.read, [runId], options);
    return row['run_id'] === null ? null : recordOf(row);
  }

  async *list(query: ListQuery = {}, options?: CallOptions): AsyncIterableIterator<LeaseRecord> {
    checkListQuery(query, options);
    const { prefix = '', workerId = null, state = null } = query;
    const end = afterPrefix(prefix);
    for (let after = ''; ;) {
      const rows = await this.#ask(this.#statements.list, [prefix, end, after, workerId, state], options);
      for (const row of rows) if (row['listed'] === 'true') yield recordOf(row);
      const last = rows.at(-1)?.['run_id'];
      if (typeof last !== 'string') return;
      after = last;
    }
  }

  async currentFence(runId: string, options?: CallOptions): Promise<number> {
    checkReadRequest(runId, options);
    const [row] = await this.#ask(this.#statements.currentFence, [runId], options);
    return row['fence'] === null ? 0 : toFencingToken(row['fence']);
  }

  /** Opens a fenced read-modify-write over runs' documents, which are kept in the leases' schema. See {@link openSession}. */
  session(options: SessionOptions): Promise<Session> {
    return openSession(this, options);
  }

  async openDocuments(request: OpenRequest, options?: CallOptions): Promise<readonly RunDocument[]> {
    const rows = await this.#askFenced(this.#statements.openDocuments, openValues(request), request, options);
    return documentsOf(request, rows);
  }

  async commitDocuments(request: CommitRequest, options?: CallOptions): Promise<void> {
    await this.#askFenced(this.#statements.commitDocuments, commitValues(request), request, options);
  }

  /**
   * Makes a transaction of the user's own obey the lease: to be its first statement. Refuses an older worker; a newer one's
   * first fenced access waits until this transaction has ended, and then sees its data. Neither renewals nor a take-over
   * wait for it. In any isolation level.
   *
   * @param tx - a client of `pg`, or whatever has its `query(text, values)`, inside a transaction.
   * @throws LeaseLostError when the lease is no longer its run's newest, or was released or revoked. The transaction has
   * failed then and can only be rolled back, as with each error here.
   * @throws ConflictError when the transaction's snapshot is older than the lease: check the lease again, and begin anew.
   * @throws TypeError for a pool, or a client outside a transaction.
   */
  async fence(tx: PostgresTransaction, lease: LeaseRef): Promise<void> {
    checkLeaseRef(lease);
    checkTransaction(tx);
    this.#caller.checkOpen();
    await fenceTransaction(tx, lease, this.#home);
  }

  /**
   * Runs a transaction of the user's own under the lease: BEGIN and the fence in one round trip, `work`, and COMMIT; or
   * ROLLBACK, and the error that came. Gives what `work` gave. See {@link fence} for what the fence does.
   *
   * @param pool - a `pg.Pool` in the leases' database. Where it is the store's own, renewals wait for a connection like it.
   * @param work - is given the client, which it neither keeps nor releases. Called once, or not at all.
   * @throws LeaseLostError, ConflictError as `fence` has them: nothing was written. Whatever `work` throws, as it is.
   * @throws StoreUnavailableError when nothing was committed: no connection, an older transaction that stays open, or a
   * statement that failed and of which `work` said nothing.
   * @throws OutcomeUnknownError when COMMIT was not answered: read again before deciding.
   * @example
   * const store = await PostgresStore.open({ pool });
   * await store.transaction(pool, lease, (client) => client.query('DELETE FROM job WHERE id = $1', [lease.runId]));
   */
  async transaction<Client, Result>(
    pool: TransactionPool<Client>,
    lease: LeaseRef,
    work: TransactionWork<Client, Result>,
    options: TransactionOptions = {},
  ): Promise<Result> {
    checkTransactionCall(pool, lease, work, options);
    this.#caller.checkOpen();
    return runTransaction({ pool, lease, work, isolation: options.isolation }, this.#home);
  }

  /** Fences a table of the user's in this database, see {@link fenceTableSql}. Repeating it is harmless. */
  async fenceTable(table: string, columns: FenceTableColumns, options?: CallOptions): Promise<void> {
    checkFenceTable(table, columns);
    await define(this.#caller, fenceTableSql(table, columns, this.#home.schema), table, options);
  }

  /** Takes the fence from the table again. Harmless when it has none. */
  async unfenceTable(table: string, options?: CallOptions): Promise<void> {
    checkFenceTable(table, { run: table, token: table });
    await define(this.#caller, unfenceTableSql(table), table, options);
  }

  changes(runIds: readonly string[], { signal }: { readonly signal: AbortSignal }): AsyncIterable<RunChange> {
    this.#caller.checkOpen();
    return this.#listener.of(runIds, signal);
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#listener.close();
      this.#caller.close();
      await this.#opened.end();
    })();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #askFenced(what: Statement, values: unknown[], { fences }: OpenRequest, options?: CallOptions): Promise<Rows> {
    return this.#ask(what, values, options).catch((error: unknown) => {
      throw toFenceError(error, fences);
    });
  }

  /** The rows of the answer. There is none at all when the leases are not the ones of this store. */
  async #ask(what: Statement, values: unknown[], options: CallOptions | undefined): Promise<readonly [Row, ...Row[]]> {
    if (this.#lost !== undefined) throw this.#lost;
    try {
      const [first, ...others] = await this.#caller.run(what, values, options?.signal);
      if (first === undefined) throw otherHome(this.#home.schema);
      return [first, ...others];
    } catch (error) {
      if (error instanceof StateLostError) this.#lost = error;
      throw error;
    }
  }
}
