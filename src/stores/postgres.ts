import type { LeaseRef } from '../lease.ts';
import { leaseIdOf } from '../../machines/lease.rules.ts';
import { StateLostError } from '../errors.ts';
import { checkDuration, checkOneOf, toFencingToken } from '../options.ts';
import { Caller, type Rows, type Statement } from './postgres/caller.ts';
import { openPool, type OpenedPool, type PostgresConnection } from './postgres/client.ts';
import { PostgresListener } from './postgres/listener.ts';
import { quoteSchema } from './postgres/migrate.ts';
import { readOpening, type FailoverPolicy, type Opening } from './postgres/opening.ts';
import { afterPrefix, fromMicroseconds, recordOf, toMicroseconds } from './postgres/rows.ts';
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
  readonly #home: string;
  readonly #statements: Statements;
  readonly #lockWait: string;
  readonly #listener: PostgresListener | undefined;
  #lost: StateLostError | undefined;
  #closing: Promise<void> | undefined;

  /** @internal */
  constructor({ opened, caller, opening, schema, requestTimeoutSeconds, listen }: Parts) {
    this.durability = opening.durability;
    this.#opened = opened;
    this.#caller = caller;
    this.#home = opening.home;
    this.#statements = statementsOf(schema);
    // Shorter than the call, so that the server's own answer, that nothing was applied, arrives.
    this.#lockWait = `${Math.max(1, Math.floor(requestTimeoutSeconds * 800))}ms`;
    this.#listener = listen ? new PostgresListener(opened.pool, schema) : undefined;
  }

  async acquire(request: AcquireRequest, options?: CallOptions): Promise<AcquireResult> {
    checkAcquireRequest(request, options);
    const { runId, workerId, acquisitionId, ttlSeconds, reacquire = 'extend' } = request;
    const [row = {}] = await this.#write(
      this.#statements.acquire,
      [runId, workerId, acquisitionId, ttlSeconds, toMicroseconds(ttlSeconds), reacquire === 'extend'],
      options,
    );
    const fencingToken = toFencingToken(row['token']);
    if (row['status'] === 'held') {
      const retryAfterSeconds = fromMicroseconds(row['wait_us']);
      return { status: 'held', workerId: String(row['holder']), fencingToken, retryAfterSeconds };
    }
    const leaseId = leaseIdOf(runId, workerId, fencingToken);
    const expiresAt = fromMicroseconds(row['until_us']);
    const lease = { runId, workerId, leaseId, fencingToken, expiresAt, acquisitionId, ttlSeconds };
    return { status: 'granted', lease, extended: row['status'] === 'extended' };
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
      const ttl = [ttlSeconds, toMicroseconds(ttlSeconds)];
      return this.#write(this.#statements.renew, [...values, ...ttl, isPatient], options);
    });
  }

  async release(lease: ReleaseRequest, options?: CallOptions): Promise<boolean> {
    checkReleaseRequest(lease, options);
    const { runId, workerId, acquisitionId, fencingToken = null } = lease;
    const [row] = await this.#write(this.#statements.release, [runId, workerId, acquisitionId, fencingToken], options);
    return row?.['released'] === 'true';
  }

  async revoke(runId: string, why: RevokeReason, options?: CallOptions): Promise<RevokedLease | null> {
    checkRevokeRequest(runId, why, options);
    const [row] = await this.#write(this.#statements.revoke, [runId, why.by, why.reason], options);
    if (row === undefined || row['token'] === null) return null;
    const workerId = String(row['worker']);
    const fencingToken = toFencingToken(row['token']);
    const leaseId = leaseIdOf(runId, workerId, fencingToken);
    const expiresAt = fromMicroseconds(row['until_us']);
    return { runId, workerId, leaseId, fencingToken, expiresAt, ttlSeconds: Number(row['ttl']) };
  }

  async read(runId: string, options?: CallOptions): Promise<LeaseRecord | null> {
    checkReadRequest(runId, options);
    const [row] = await this.#read(this.#statements.read, [runId], options);
    return row === undefined || row['run_id'] === null ? null : recordOf(row);
  }

  async *list(query: ListQuery = {}, options?: CallOptions): AsyncIterableIterator<LeaseRecord> {
    checkListQuery(query, options);
    const { prefix = '', workerId = null, state = null } = query;
    const end = afterPrefix(prefix);
    for (let after = ''; ;) {
      const rows = await this.#read(this.#statements.list, [prefix, end, after, workerId, state], options);
      for (const row of rows) if (row['listed'] === 'true') yield recordOf(row);
      const last = rows.at(-1)?.['run_id'];
      if (typeof last !== 'string') return;
      after = last;
    }
  }

  async currentFence(runId: string, options?: CallOptions): Promise<number> {
    checkReadRequest(runId, options);
    const [row] = await this.#read(this.#statements.currentFence, [runId], options);
    return row === undefined || row['fence'] === null ? 0 : toFencingToken(row['fence']);
  }

  changes(runIds: readonly string[], { signal }: { readonly signal: AbortSignal }): AsyncIterable<RunChange> {
    return this.#listener?.of(runIds, signal) ?? silence(signal);
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#listener?.close();
      this.#caller.close();
      await this.#opened.end();
    })();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #write(what: Statement, values: unknown[], options: CallOptions | undefined): Promise<Rows> {
    return this.#ask(what, [this.#home, this.#lockWait, ...values], options);
  }

  /** The rows of a page or a record, each beside whether the leases are still the ones of this store. */
  async #read(what: Statement, values: unknown[], options: CallOptions | undefined): Promise<Rows> {
    return this.#ask(what, [this.#home, ...values], options);
  }

  async #ask(what: Statement, values: unknown[], options: CallOptions | undefined): Promise<Rows> {
    if (this.#lost !== undefined) throw this.#lost;
    try {
      return await this.#caller.run(what, values, options?.signal);
    } catch (error) {
      if (error instanceof StateLostError) this.#lost = error;
      throw error;
    }
  }
}

/** Nothing is heard, and the waiter polls. */
async function* silence(signal: AbortSignal): AsyncIterableIterator<RunChange> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
