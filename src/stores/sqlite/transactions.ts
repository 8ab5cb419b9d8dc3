/**
 * Transactions on one connection. What opens and ends them is run by `exec`, which leaves no statement behind: one of libsql's
 * that has found a lock stays open, see `SqliteDatabase`. So the first thing that a transaction does takes its lock, and
 * nothing that is prepared can find the file locked.
 */
import { OutcomeUnknownError } from '../../errors.ts';
import { isInTransaction, type SqliteDatabase } from './database.ts';
import { isBusy } from './errors.ts';

/** What became of a step. */
export type Outcome = { readonly value: unknown } | { readonly error: unknown };

/** Runs what only reads, on the newest committed state. Throws the driver's error when the file is locked against readers. */
export function snapshot<Result>(database: SqliteDatabase, read: () => Result): Result {
  database.exec('BEGIN');
  try {
    database.exec('SELECT 1 FROM sqlite_schema LIMIT 1');
    return read();
  } finally {
    // Without writes there is nothing to commit, and a rollback is never refused.
    undo(database);
  }
}

/**
 * Runs the steps in one write transaction, and tells what became of the first ones, of one at least: all of these are
 * applied, but for one that threw. One that throws as the first has its transaction for itself, and thereby its answer; one
 * that throws later is undone with those before it, which then run again without it.
 *
 * It throws when the transaction did not begin, or found a lock in its way: nothing was applied then.
 */
export function commitTogether(
  database: SqliteDatabase,
  steps: Iterable<() => unknown>,
  name: string,
): readonly Outcome[] {
  database.exec('BEGIN IMMEDIATE');
  const done: { step: () => unknown; value: unknown }[] = [];
  for (const step of steps) {
    try {
      done.push({ step, value: step() });
    } catch (error) {
      undo(database);
      const before = done.map((each) => each.step);
      if (before.length > 0) return commitTogether(database, before, name);
      if (isBusy(error)) throw error;
      return [{ error }];
    }
  }
  const error = commit(database, name);
  return done.map(({ value }) => (error ? { error } : { value }));
}

function commit(database: SqliteDatabase, name: string): OutcomeUnknownError | undefined {
  try {
    database.exec('COMMIT');
    return undefined;
  } catch (error) {
    undo(database);
    // A COMMIT that found a lock has written nothing. After any other error it may stand in the file's log.
    if (isBusy(error)) throw error;
    return new OutcomeUnknownError(`The SQLite store ${name} failed while it wrote`, { cause: error });
  }
}

function undo(database: SqliteDatabase): void {
  // Some errors have ended the transaction already.
  if (isInTransaction(database)) database.exec('ROLLBACK');
}
