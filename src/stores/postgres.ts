import type { LeaseRef } from '../lease.ts';
import { leaseIdOf } from '../../machines/lease.rules.ts';
import { StateLostError } from '../errors.ts';
import { checkDuration, checkOneOf, toFencingToken } from '../options.ts';
import { Caller, type Row, type Statement } from './postgres/caller.ts';
import { openPool, type OpenedPool, type PostgresConnection } from './postgres/client.ts';
import { otherHome } from './postgres/errors.ts';
import { PostgresListener } from './postgres/listener.ts';
import { quoteSchema } from './postgres/migrate.ts';
import { readOpening, type FailoverPolicy, type Opening } from './postgres/opening.ts';
import { afterPrefix, fromMicroseconds, readAcquireAnswer, recordOf } from './postgres/rows.ts';
import { statementsOf, type Statements } from './postgres/statements.ts';
import { renewalsOf } from './postgres/renewals.ts';
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
  Durability,
  LeaseRecord,
  LeaseStore,
  ListQuery,
  ReleaseRequest,
  RenewResult,
  RevokedLease,
  RevokeReason,
  RunChange,
} from './store.ts';

export { migratePostgres, type MigrateOptions, type Migration } from './postgres/migrate.ts';
export type { PostgresClient, PostgresPool, PostgresStatement } from './postgres/client.ts';

export interface PostgresStoreOptions extends PostgresConnection {
  /** The schema that `migratePostgres` has installed. @default 'lessor' */
  readonly schema?: string | undefined;
  /** How long a call may take, in seconds, from the call on: waiting for a connection and for a locked row is part of it. @default 5 */
  readonly requestTimeoutSeconds?: number | undefined;
  /**
   * Whether statements are prepared, once per connection. A pooler that mixes up connections without knowing of prepared
   * statements is noticed, and they are no longer prepared. @default true
   */
  readonly prepare?: boolean | undefined;
  /** Whether waiters are woken by `LISTEN`, on one more connection while somebody waits. @default true */
  readonly listen?: boolean | undefined;
  /**
   * What a promoted standby does to this open store: `refuse` rejects every call with `StateLostError` until the store is
   * opened anew, since grants may be missing. @default 'continue' with synchronous standbys, else 'refuse'
   */
  readonly failover?: FailoverPolicy | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Opens the leases that PostgreSQL keeps, in a schema that `migratePostgres` has installed.
 *
 * The server's clock decides. Every call is one statement in one round trip, decides on the primary, and leaves nothing
 * behind in the session, so that it works through a pooler in transaction mode. A grant is on disk before it is returned,
 * whatever `synchronous_commit` the role has.
 *
 * @throws TypeError when the client is of another kind, or a setting is wrong.
 * @throws StoreUnavailableError when the server cannot be asked, is a standby or read-only, or has no such schema.
 */
export async function postgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const { schema = 'lessor', requestTimeoutSeconds = 5, prepare = true, listen = true, failover, signal } = options;
  const quoted = quoteSchema(schema);
  checkDuration('requestTimeoutSeconds', requestTimeoutSeconds, 1e6);
  if (failover !== undefined) checkOneOf('failover', failover, ['refuse', 'continue']);
  const opened = await openPool(options, requestTimeoutSeconds);
  const caller = new Caller({ pool: opened.pool, schema: quoted, requestTimeoutSeconds, prepare });
  try {
    const opening = await readOpening(caller, quoted, failover, signal);
    return new PostgresStore({ opened, caller, opening, schema: quoted, requestTimeoutSeconds, listen });
  } catch (error) {
    caller.close();
    await opened.end();
    throw error;
  }
}

interface Parts {
  readonly opened: OpenedPool;
  readonly caller: Caller;
  readonly opening: Opening;
  readonly schema: string;
  readonly requestTimeoutSeconds: number;
  readonly listen: boolean;
}

/** Leases in PostgreSQL. Made by {@link postgresStore}. */
export class PostgresStore implements LeaseStore {
  readonly durability: Durability;
  readonly #opened: OpenedPool;
  readonly #caller: Caller;
  readonly #schema: string;
  readonly #statements: Statements;
  readonly #listener: PostgresListener;
  #lost: StateLostError | undefined;
  #closing: Promise<void> | undefined;

  /** @internal */
  constructor({ opened, caller, opening, schema, requestTimeoutSeconds, listen }: Parts) {
    this.durability = opening.durability;
    this.#opened = opened;
    this.#caller = caller;
    this.#schema = schema;
    // Shorter than the call, so that the server's own answer, that nothing was applied, arrives.
    const lockWait = `${Math.max(1, Math.floor(requestTimeoutSeconds * 800))}ms`;
    this.#statements = statementsOf({ schema, home: opening.home, lockWait });
    this.#listener = new PostgresListener(opened.pool, schema, { silent: !listen });
  }

  async acquire(request: AcquireRequest, options?: CallOptions): Promise<AcquireResult> {
    checkAcquireRequest(request, options);
    const { runId, workerId, acquisitionId, ttlSeconds, reacquire = 'extend' } = request;
    const values = [runId, workerId, acquisitionId, ttlSeconds, reacquire === 'extend'];
    const [row] = await this.#ask(this.#statements.acquire, values, options);
    const { status, fencingToken, seconds, holder } = readAcquireAnswer(row['answer']);
    if (status === 'held') {
      return { status, workerId: holder, fencingToken, retryAfterSeconds: Math.max(0, seconds) };
    }
    const leaseId = leaseIdOf(runId, workerId, fencingToken);
    const lease = { runId, workerId, leaseId, fencingToken, expiresAt: seconds, acquisitionId, ttlSeconds };
    return { status: 'granted', lease, extended: status === 'extended' };
  }

  async renew(leases: readonly LeaseRef[], ttlSeconds: number, options?: CallOptions): Promise<readonly RenewResult[]> {
    checkRenewRequest(leases, ttlSeconds, options);
    if (leases.length === 0) return [];
    return renewalsOf(leases, (some, isPatient) => {
      const values = [
        some.map(({ runId }) => runId),
        some.map(({ workerId }) => workerId),
        some.map(({ fencingToken }) => fencingToken),
        some.map(({ acquisitionId }) => acquisitionId),
      ];
      return this.#ask(this.#statements.renew, [...values, ttlSeconds, isPatient], options);
    });
  }

  async release(lease: ReleaseRequest, options?: CallOptions): Promise<boolean> {
    checkReleaseRequest(lease, options);
    const { runId, workerId, acquisitionId, fencingToken = null } = lease;
    const [row] = await this.#ask(this.#statements.release, [runId, workerId, acquisitionId, fencingToken], options);
    return row['released'] === 'true';
  }

  async revoke(runId: string, why: RevokeReason, options?: CallOptions): Promise<RevokedLease | null> {
    checkRevokeRequest(runId, why, options);
    const [row] = await this.#ask(this.#statements.revoke, [runId, why.by, why.reason], options);
    if (row['token'] === null) return null;
    const workerId = String(row['worker']);
    const fencingToken = toFencingToken(row['token']);
    const leaseId = leaseIdOf(runId, workerId, fencingToken);
    const expiresAt = fromMicroseconds(row['until_us']);
    return { runId, workerId, leaseId, fencingToken, expiresAt, ttlSeconds: Number(row['ttl']) };
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

  changes(runIds: readonly string[], { signal }: { readonly signal: AbortSignal }): AsyncIterable<RunChange> {
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

  /** The rows of the answer. There is none at all when the leases are not the ones of this store. */
  async #ask(what: Statement, values: unknown[], options: CallOptions | undefined): Promise<readonly [Row, ...Row[]]> {
    if (this.#lost !== undefined) throw this.#lost;
    try {
      const [first, ...others] = await this.#caller.run(what, values, options?.signal);
      if (first === undefined) throw otherHome(this.#schema);
      return [first, ...others];
    } catch (error) {
      if (error instanceof StateLostError) this.#lost = error;
      throw error;
    }
  }
}
