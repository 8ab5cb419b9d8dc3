import { ConflictError } from '../../errors.ts';
import type { LeaseRef } from '../../lease.ts';
import { checkSqliteDatabase, isInTransaction, isOpen, type SqliteDatabase, type SqliteStatement } from './database.ts';
import { toStoreError } from './errors.ts';
import { raiseFence } from './fence.ts';
import { prepareStatements, type SqliteStatements } from './statements.ts';

/**
 * Takes the file's lock, as each statement does that may write, so that what is found then holds until the transaction ends.
 * By itself and unprepared: libsql leaves a prepared statement open that found the file locked, and with it the old state.
 */
const LOCK = 'DELETE FROM lessor_meta WHERE 0';

/** A row where the fence stands at the lease already, and the lease is its run's newest, in the file with that marker. */
const RAISED = `SELECT 1 FROM lessor_fence AS fence JOIN lessor_lease AS lease ON lease.run_id = fence.run_id
  WHERE fence.run_id = ? AND fence.fencing_token = ? AND fence.acquisition_id = ?
    AND lease.fencing_token = fence.fencing_token AND lease.acquisition_id = fence.acquisition_id
    AND lease.worker_id = ? AND lease.expires_at IS NOT NULL
    AND (SELECT value FROM lessor_meta WHERE key = 'marker') = ?`;

interface Prepared {
  readonly raised: SqliteStatement;
  /** For a fence that is to be raised or refused. */
  readonly statements: SqliteStatements;
}

/** Once per connection of the user's, and gone with it. */
const prepared = new WeakMap<SqliteDatabase, Prepared>();

/** @throws TypeError for what is no open connection inside a transaction. */
export function checkTransaction(tx: unknown): asserts tx is SqliteDatabase {
  checkSqliteDatabase('tx', tx);
  if (!isOpen(tx)) throw new TypeError('Expected `tx` to be an open connection, got a closed one');
  if (!isInTransaction(tx)) {
    throw new TypeError('Expected `tx` to be inside a transaction: run BEGIN IMMEDIATE on it first');
  }
}

/** Runs the fence in the user's transaction. A refusal has changed nothing in it, and leaves it open. */
export function fenceTransaction(tx: SqliteDatabase, lease: LeaseRef, marker: string): void {
  const { runId, workerId, fencingToken, acquisitionId } = lease;
  try {
    tx.exec(LOCK);
    const { raised, statements } = prepare(tx);
    if (raised.get(runId, fencingToken, acquisitionId, workerId, marker) !== undefined) return;
    const { marker: found } = statements.glance.get() as { marker: string };
    if (found !== marker) throw elsewhere();
    raiseFence(statements, lease);
  } catch (error) {
    throw isOvertaken(error)
      ? new ConflictError('The transaction read before another one wrote: roll it back, and begin anew', {
          cause: error,
        })
      : toTransactionError(error);
  }
}

function prepare(tx: SqliteDatabase): Prepared {
  let known = prepared.get(tx);
  if (known === undefined) {
    known = { raised: tx.prepare(RAISED), statements: prepareStatements(tx) };
    prepared.set(tx, known);
  }
  return known;
}

function toTransactionError(error: unknown): unknown {
  if (error instanceof TypeError) return error;
  if (error instanceof Error && error.message.includes('no such table: lessor_')) return elsewhere(error);
  return toStoreError(error, 'of this transaction');
}

/** SQLITE_BUSY_SNAPSHOT, as the drivers name it. Waiting would not help: this transaction sees an older state. */
function isOvertaken(error: unknown): boolean {
  const { code, rawCode, errcode } = (error ?? {}) as { code?: unknown; rawCode?: unknown; errcode?: unknown };
  return code === 'SQLITE_BUSY_SNAPSHOT' || rawCode === 517 || errcode === 517;
}

function elsewhere(cause?: unknown): TypeError {
  return new TypeError('Expected `tx` to be a connection to the file of these leases, got another one', { cause });
}
