import { StateLostError, StoreUnavailableError } from '../../errors.ts';
import type { LeaseRef } from '../../lease.ts';
import { checkObject } from '../../options.ts';
import { otherHome } from './errors.ts';
import { toFenceError } from './documents.ts';

/** A connection inside a transaction: `pg`'s client, or whatever runs one statement with values on one connection. */
export interface PostgresTransaction {
  query(text: string, values: unknown[]): Promise<{ readonly rows: ReadonlyArray<Readonly<Record<string, unknown>>> }>;
}

/** @throws TypeError for a pool, whose statements may each run on another connection. */
export function checkTransaction(tx: unknown): asserts tx is PostgresTransaction {
  checkObject('tx', tx);
  const { query, totalCount, getTransactionStatus } = tx as Record<string, unknown>;
  if (typeof query !== 'function')
    throw new TypeError('Expected `tx` to be a connection with `query`, as a client of `pg`');
  if (totalCount !== undefined) {
    throw new TypeError(
      'Expected `tx` to be a client inside a transaction, got a pool: take a client by `pool.connect()`',
    );
  }
  if (typeof getTransactionStatus !== 'function') return;
  const status: unknown = getTransactionStatus.call(tx);
  if (status === 'I') throw notInTransaction();
  if (status === 'E')
    throw new StoreUnavailableError('The transaction has failed already: roll it back and begin another');
}

/** Runs the fence in the user's transaction. An error leaves that transaction failed, so that it cannot be committed. */
export async function fenceTransaction(
  tx: PostgresTransaction,
  lease: LeaseRef,
  text: string,
  schema: string,
): Promise<void> {
  const { runId, workerId, fencingToken, acquisitionId } = lease;
  let rows;
  try {
    ({ rows } = await tx.query(text, [runId, workerId, fencingToken, acquisitionId]));
  } catch (error) {
    throw toTransactionError(error, lease);
  }
  if (rows.length === 0) throw otherHome(schema);
}

function toTransactionError(error: unknown, lease: LeaseRef): unknown {
  const known = toFenceError(error, [lease]);
  if (known !== error) return known;
  const { code, message } = error as { code?: unknown; message?: unknown };
  const options = { cause: error };
  if (code === 'LS014') return notInTransaction(error);
  if (code === '42883' || code === '3F000') {
    return new StateLostError(`The database of this transaction has no leases: ${String(message)}`, options);
  }
  return new StoreUnavailableError(`The transaction could not be fenced, roll it back: ${String(message)}`, options);
}

function notInTransaction(cause?: unknown): TypeError {
  return new TypeError('Expected `tx` to be inside a transaction: run BEGIN on it first', { cause });
}
