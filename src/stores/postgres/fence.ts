import { StoreUnavailableError } from '../../errors.ts';
import type { LeaseRef } from '../../lease.ts';
import { checkObject } from '../../options.ts';
import { otherHome } from './errors.ts';
import { toFenceError } from './documents.ts';

/** A connection inside a transaction: `pg`'s client, or whatever runs one statement with values on one connection. */
export interface PostgresTransaction {
  query(text: string, values: unknown[]): Promise<{ readonly rows: ReadonlyArray<Readonly<Record<string, unknown>>> }>;
}

/** Where the leases are: the quoted schema, and the home that the store was opened on. */
export interface FenceHome {
  readonly schema: string;
  readonly home: string;
}

/** @throws TypeError for a pool, whose statements may each run on another connection. */
export function checkTransaction(tx: unknown): asserts tx is PostgresTransaction {
  checkObject('tx', tx);
  const { query, totalCount } = tx as Record<string, unknown>;
  if (typeof query !== 'function')
    throw new TypeError('Expected `tx` to be a connection with `query`, as a client of `pg`');
  if (totalCount !== undefined) {
    throw new TypeError(
      'Expected `tx` to be a client inside a transaction, got a pool: take a client by `pool.connect()`',
    );
  }
  const status = statusOf(tx);
  if (status === 'I') throw notInTransaction();
  if (status === 'E')
    throw new StoreUnavailableError('The transaction has failed already: roll it back and begin another');
}

/** `T` in a transaction, `E` in a failed one, `I` outside, as a client of `pg` knows it; anything else does not tell. */
function statusOf(tx: object): unknown {
  const { getTransactionStatus } = tx as Record<string, unknown>;
  return typeof getTransactionStatus === 'function' ? (getTransactionStatus.call(tx) as unknown) : undefined;
}

/** Runs the fence in the user's transaction. An error leaves that transaction failed, so that it cannot be committed. */
export async function fenceTransaction(
  tx: PostgresTransaction,
  lease: LeaseRef,
  { schema, home }: FenceHome,
): Promise<void> {
  const { runId, workerId, fencingToken, acquisitionId } = lease;
  const text = `SELECT ${schema}.fence_at($1, $2, $3, $4, $5) AS place`;
  let rows;
  try {
    // Refused outside a transaction, where the fence would be gone again before the write came.
    if (statusOf(tx) !== 'T') await tx.query(`LOCK TABLE ${schema}.meta IN ACCESS SHARE MODE`, []);
    ({ rows } = await tx.query(text, [home, runId, workerId, fencingToken, acquisitionId]));
  } catch (error) {
    throw toTransactionError(error, lease);
  }
  const place = String(rows[0]?.['place']);
  if (place === '') return;
  throw markerOf(place) === markerOf(home) ? otherHome(schema) : elsewhere();
}

function toTransactionError(error: unknown, lease: LeaseRef): unknown {
  const known = toFenceError(error, [lease]);
  if (known !== error) return known;
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (code === 'LS014' || code === '25P01') return notInTransaction(error);
  // No such function, schema or table.
  if (code === '42883' || code === '3F000' || code === '42P01') return elsewhere(error);
  const why =
    code === '55P03' ? "an older worker's transaction, or another one of this lease, is still open" : String(message);
  return new StoreUnavailableError(`The transaction could not be fenced, roll it back: ${why}`, { cause: error });
}

function notInTransaction(cause?: unknown): TypeError {
  return new TypeError('Expected `tx` to be inside a transaction: run BEGIN on it first', { cause });
}

function elsewhere(cause?: unknown): TypeError {
  return new TypeError('Expected `tx` to be connected to the database of these leases, got another one', { cause });
}

/** Of a home, or a place. */
function markerOf(home: string): string {
  return home.split('/', 1)[0]!;
}
