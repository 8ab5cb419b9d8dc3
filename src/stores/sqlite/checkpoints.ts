/**
 * SQLite before 3.51.3 may damage a file in WAL mode: when one connection's checkpoint meets another's commit that starts the
 * log anew. So for older drivers SQLite's own checkpoints are turned off, and the store makes its own: on a second
 * connection, while the first one has the writers' lock, so that nobody commits meanwhile. (A checkpoint of the kind that
 * takes that lock itself goes on without it when it is not to be had.)
 */
import { statSync } from 'node:fs';
import type { SqliteDatabase } from './database.ts';

const FIRST_RIGHT_VERSION = '3.51.3';
/** A call writes a page or two, and SQLite itself lets a thousand gather. A checkpoint waits for the disk, so it is not cheap. */
const CALLS_BETWEEN = 1000;
/** Longer than the store's own checkpoints let it get. */
const LONG_LOG_BYTES = 10_000_000;

export function hasCheckpointBug(database: SqliteDatabase): boolean {
  const { version } = database.prepare('SELECT sqlite_version() AS version').get() as { version: string };
  return version.localeCompare(FIRST_RIGHT_VERSION, 'en', { numeric: true }) < 0;
}

export class Checkpoints {
  readonly #openAnother: () => SqliteDatabase;
  readonly #database: SqliteDatabase;
  #calls = 0;

  /** Takes the checkpoints of a database over. A log that others have left long is written back at once. */
  constructor(database: SqliteDatabase, file: string) {
    database.exec('PRAGMA wal_autocheckpoint = 0');
    const Driver = database.constructor as new (file: string) => SqliteDatabase;
    this.#openAnother = () => new Driver(file);
    this.#database = database;
    const log = statSync(`${file}-wal`, { throwIfNoEntry: false });
    if (log && log.size > LONG_LOG_BYTES) this.#checkpoint();
  }

  /** To be called after each write transaction, with its calls. One that finds the file locked is made up for after the next. */
  wrote(calls: number): void {
    this.#calls += calls;
    if (this.#calls >= CALLS_BETWEEN && this.#checkpoint()) this.#calls = 0;
  }

  #checkpoint(): boolean {
    try {
      this.#database.exec('BEGIN IMMEDIATE');
    } catch {
      return false;
    }
    try {
      this.#writeBack();
      return true;
    } catch {
      return false;
    } finally {
      this.#database.exec('ROLLBACK');
    }
  }

  #writeBack(): void {
    const another = this.#openAnother();
    try {
      another.exec('PRAGMA busy_timeout = 0; PRAGMA wal_autocheckpoint = 0');
      // The log begins anew after this: what was taken from it must be on the disk, as its commits were.
      another.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON');
      another.prepare('PRAGMA wal_checkpoint(PASSIVE)').get();
    } finally {
      another.close();
    }
  }
}
