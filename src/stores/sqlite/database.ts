/**
 * The part of a SQLite driver that the store calls. `better-sqlite3` 12, `libsql` 0.5 and `DatabaseSync` of `node:sqlite`
 * all have it, so that the driver stays the user's. They differ, and only what all three do right is used:
 *
 * - libsql runs a statement with RETURNING twice or leaves it open, so nothing here returns rows and writes at once;
 * - libsql takes a single null for a missing argument, and aborts the process when a closed connection is asked for its
 *   transaction;
 * - libsql leaks a little at every `prepare`, so each statement is prepared once;
 * - better-sqlite3's `get` swallows an error that comes with the end of a statement, so writes stand in a transaction;
 * - libsql leaves a prepared statement open that finds the file locked. While it is open, what other statements read stays
 *   read: without WAL nobody can commit (their COMMIT answers that the database is locked), with WAL every later read sees the
 *   old state and no checkpoint ends. And its `get` then answers for the old arguments. So only what `exec` runs may find a
 *   lock, and that takes the lock for all that follows: see `transactions.ts`.
 */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  close(): unknown;
  /** Whether a transaction is open: better-sqlite3's and libsql's word. */
  readonly inTransaction?: boolean;
  /** The same, in `node:sqlite`. */
  readonly isTransaction?: boolean;
}

export interface SqliteStatement {
  get(...values: SqliteValue[]): unknown;
  all(...values: SqliteValue[]): unknown[];
  run(...values: SqliteValue[]): Changes;
}

/** What a statement did. */
export interface Changes {
  /** The rows that it changed. */
  readonly changes: number | bigint;
}

export type SqliteValue = string | number | null;

/** Refuses what is no connection that the store can work with. */
export function checkSqliteDatabase(argument: string, value: unknown): asserts value is SqliteDatabase {
  const database = (value ?? {}) as Partial<Record<string, unknown>>;
  if (!['exec', 'prepare', 'close'].every((method) => typeof database[method] === 'function')) {
    throw new TypeError(
      `Expected \`${argument}\` to be a connection of better-sqlite3, libsql or node:sqlite, with exec, prepare and close`,
    );
  }
  if (
    isOpen(value as SqliteDatabase) &&
    typeof (database['inTransaction'] ?? database['isTransaction']) !== 'boolean'
  ) {
    throw new TypeError(
      `Expected \`${argument}\` to tell whether it is in a transaction: node:sqlite does from Node 22.16`,
    );
  }
}

/** Whether the connection is open, as far as it tells. */
export function isOpen(database: SqliteDatabase): boolean {
  // `open` is a flag in two drivers and a method in the third.
  const { open, isOpen: flag } = database as { open?: unknown; isOpen?: unknown };
  return open !== false && flag !== false;
}

/** Whether a transaction is open on the connection. To be asked of an open one only. */
export function isInTransaction(database: SqliteDatabase): boolean {
  return database.inTransaction ?? database.isTransaction ?? false;
}
