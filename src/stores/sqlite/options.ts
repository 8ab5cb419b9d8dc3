import type { SqliteDatabase } from './database.ts';

/** How a `SqliteStore` is opened. */
export interface SqliteStoreOptions {
  /**
   * An open connection of `better-sqlite3` 12, `libsql` 0.5 or `node:sqlite` (Node 22.16). While its user has a
   * transaction open on it, the store waits.
   *
   * In one process, open one file with one driver only: each brings a SQLite of its own, and closing the file in one of
   * them takes the other's locks from it, so that two writers may damage the file. Other processes may use another driver.
   */
  readonly database: SqliteDatabase;
  /** So long a call waits for the file's lock, in seconds, without stopping the event loop. @default 5 */
  readonly busyTimeoutSeconds?: number | undefined;
  /**
   * Whether the connection is the store's alone. Then it is set to WAL, with every commit synced to the disk, and closed
   * with the store. Else its settings stay as they are, `busy_timeout` as it was at opening, and `durability`
   * tells what they keep. @default false
   */
  readonly ownsDatabase?: boolean | undefined;
}
