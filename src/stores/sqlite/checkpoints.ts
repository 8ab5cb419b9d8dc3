/**
 * SQLite before 3.51.3 may damage a file in WAL mode: when one connection's checkpoint, which keeps no writer out, meets
 * another's commit that starts the log anew. So for older drivers SQLite's own checkpoints are turned off, and the store
 * makes its own, of the kind that holds the writers' lock.
 */
import { statSync } from 'node:fs';
import type { SqliteDatabase, SqliteStatement } from './database.ts';

const FIRST_RIGHT_VERSION = '3.51.3';
/** As many pages as SQLite itself lets gather, at about two a call. */
const WRITES_BETWEEN = 500;
const LONG_LOG_BYTES = 4_000_000;

export function hasCheckpointBug(database: SqliteDatabase): boolean {
  const { version } = database.prepare('SELECT sqlite_version() AS version').get() as { version: string };
  return version.localeCompare(FIRST_RIGHT_VERSION, 'en', { numeric: true }) < 0;
}

export class Checkpoints {
  readonly #statement: SqliteStatement;
  #writes = 0;

  /** Takes the checkpoints of a database over. A log that others have left long is written back at once. */
  constructor(database: SqliteDatabase, file: string) {
    database.exec('PRAGMA wal_autocheckpoint = 0');
    this.#statement = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)');
    const log = statSync(`${file}-wal`, { throwIfNoEntry: false });
    if (log && log.size > LONG_LOG_BYTES) this.#checkpoint();
  }

  /** To be called after each write transaction. */
  wrote(): void {
    this.#writes += 1;
    if (this.#writes % WRITES_BETWEEN === 0) this.#checkpoint();
  }

  #checkpoint(): void {
    try {
      this.#statement.get();
    } catch {
      // Somebody reads or writes: the log grows until the next one.
    }
  }
}
