/**
 * SQLite before 3.51.3 may damage a file in WAL mode: when one connection's checkpoint meets another's commit that starts the
 * log anew. So for older drivers SQLite's own checkpoints are turned off, and the store makes its own: on a second
 * connection, while the first one has the writers' lock, so that nobody commits meanwhile. (A checkpoint of the kind that
 * takes that lock itself goes on without it when it is not to be had.)
 */
import { statSync } from 'node:fs';
import type { SqliteDatabase } from './database.ts';

const FIRST_RIGHT_VERSION = '3.51.3';
/** As many pages as SQLite itself lets gather, at about two a call. */
const CALLS_BETWEEN = 500;
const LONG_LOG_BYTES = 4_000_000;

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
      another.prepare('PRAGMA wal_checkpoint(PASSIVE)').get();
    } finally {
      another.close();
    }
  }
}
