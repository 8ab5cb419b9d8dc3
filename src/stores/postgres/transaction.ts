/** A transaction of the user's own under a lease, from BEGIN to COMMIT. */
import { OutcomeUnknownError, StoreUnavailableError } from '../../errors.ts';
import type { LeaseRef } from '../../lease.ts';
import { checkFunction, checkObject, checkOneOf } from '../../options.ts';
import { checkLeaseRef } from '../requests.ts';
import { begin, type TransactionClient } from './begin.ts';
import { checkOut, checkPool, giveBack, type PostgresPool } from './client.ts';
import { toFenceError } from './documents.ts';
import { isRefusal } from './errors.ts';
import { statusOf } from './fence.ts';
import type { FenceHome } from './fence-statements.ts';

/** A `pg.Pool`, and the client that it gives. */
export interface TransactionPool<Client> {
  /** What a single client has not. */
  readonly totalCount: number;
  connect(done: (error: Error | undefined, client: Client | undefined) => void): void;
}

/** Is given the client. */
export type TransactionWork<Client, Result> = (client: Client) => Promise<Result> | Result;

/** How the transaction is begun. */
export interface TransactionOptions {
  /** @default what the server has, which is `read committed` unless somebody changed it */
  readonly isolation?: 'read committed' | 'repeatable read' | 'serializable' | undefined;
}

interface TransactionCall<Client, Result> extends TransactionOptions {
  readonly pool: TransactionPool<Client>;
  readonly lease: LeaseRef;
  readonly work: TransactionWork<Client, Result>;
}

export function checkTransactionCall(pool: unknown, lease: unknown, work: unknown, options: TransactionOptions): void {
  checkPool(pool);
  checkLeaseRef(lease);
  checkFunction('work', work);
  checkObject('options', options);
  const { isolation } = options;
  if (isolation !== undefined)
    checkOneOf('isolation', isolation, ['read committed', 'repeatable read', 'serializable']);
}

/** What `work` gave, once that is committed. */
export async function runTransaction<Client, Result>(
  call: TransactionCall<Client, Result>,
  home: FenceHome,
): Promise<Result> {
  const { pool, lease: given, work, isolation } = call;
  const lease = { ...given };
  const how = isolation === undefined ? 'BEGIN' : `BEGIN ISOLATION LEVEL ${isolation}`;
  const client = await takeClient(pool as unknown as PostgresPool);
  try {
    await begin({ client, how, lease, given, home });
    const result = await unreleased(client, () => work(client as unknown as Client));
    await commit(client);
    giveBack(client, { broken: false });
    return result;
  } catch (error) {
    giveBack(client, { broken: !(await isRolledBack(client)) });
    throw isOfLease(error, lease) ? toFenceError(error, [lease]) : error;
  }
}

/** A client that `work` gave back would be somebody else's when the COMMIT comes. */
async function unreleased<Result>(client: TransactionClient, work: () => Promise<Result> | Result): Promise<Result> {
  const { release } = client;
  client.release = () => {
    throw new TypeError('Expected `work` not to release its client: `transaction` does, when all is committed');
  };
  try {
    return await work();
  } finally {
    client.release = release;
  }
}

async function takeClient(pool: PostgresPool): Promise<TransactionClient> {
  let client;
  try {
    client = (await checkOut(pool)) as TransactionClient;
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new StoreUnavailableError(`No connection for the transaction: ${said}`, { cause: error });
  }
  const status = statusOf(client);
  if (status === 'T' || status === 'E') {
    giveBack(client, { broken: true });
    throw new StoreUnavailableError('The pool gave a connection that somebody left inside a transaction');
  }
  return client;
}

/** @throws OutcomeUnknownError when no answer came; an error of the server has rolled everything back. */
async function commit(client: TransactionClient): Promise<void> {
  if (statusOf(client) === 'I')
    throw new TypeError(
      'Expected `work` to leave its transaction open, but it has ended it: what followed is unfenced',
    );
  let answer: { readonly command?: unknown };
  try {
    answer = (await client.query({ text: 'COMMIT' })) as { readonly command?: unknown };
  } catch (error) {
    if (isRefusal(error)) throw error;
    // The words of `pg`, for a client that was broken or ended before.
    if (error instanceof Error && error.message.endsWith('is not queryable'))
      throw new StoreUnavailableError('Nothing was committed: the connection had ended', { cause: error });
    throw new OutcomeUnknownError('PostgreSQL did not answer the COMMIT, and may have done it', { cause: error });
  }
  if (answer.command === 'ROLLBACK')
    throw new StoreUnavailableError(
      'Nothing was committed: a statement of the transaction had failed, untold by `work`',
    );
}

/** Whether the connection is as it was before. Asked always: what a client knows of its transaction is old after an error. */
async function isRolledBack(client: TransactionClient): Promise<boolean> {
  try {
    await client.query({ text: 'ROLLBACK' });
    return true;
  } catch {
    return false;
  }
}

/**
 * Whether the server refused something for the sake of this lease, or of another transaction. Any other error is the user's,
 * as that of a row with another run's token, or an older one.
 */
function isOfLease(error: unknown, { runId, fencingToken }: LeaseRef): boolean {
  const { code, severity, hint, message } = (error ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof severity !== 'string') return false;
  if (code === '40001' || code === '40P01') return true;
  return (
    hint === runId && (code === 'LS012' || (code === 'LS010' && String(message).includes(`(token ${fencingToken})`)))
  );
}
