/**
 * What the store keeps in its file. A lease row per run, which stays after release since it holds the last token; a fence
 * row per run that was written under a fence; the documents of sessions; and a marker by which a store knows its own file again.
 *
 * Times are seconds since 1970 by the machine's clock, with milliseconds. `expires_at` is null once the lease was released.
 * The triggers hold for every client of the file: no row is deleted, and no token is lowered, by whatever SQL.
 *
 * Restoring a backup brings old tokens back. Before the file is used again, raise every fence above whatever was issued
 * since, and end the leases: `UPDATE lessor_lease SET fencing_token = fencing_token + 1000000, expires_at = NULL`.
 */
import { randomUUID } from 'node:crypto';
import { StoreUnavailableError } from '../../errors.ts';
import { isInTransaction, type SqliteDatabase } from './database.ts';
import { stateLost } from './errors.ts';
import { snapshot } from './transactions.ts';

export const SCHEMA_VERSION = 1;

/** The first version with `unixepoch('subsec')`. */
const OLDEST_SQLITE = '3.42.0';

const TOKEN = 'INTEGER NOT NULL CHECK (fencing_token BETWEEN 1 AND 9007199254740991)';

const CREATE_SCHEMA = `
  CREATE TABLE lessor_meta (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE lessor_lease (
    run_id TEXT NOT NULL PRIMARY KEY CHECK (run_id <> ''),
    worker_id TEXT NOT NULL CHECK (worker_id <> ''),
    fencing_token ${TOKEN},
    acquisition_id TEXT NOT NULL CHECK (acquisition_id <> ''),
    acquired_at REAL NOT NULL CHECK (abs(acquired_at) < 1e12),
    expires_at REAL CHECK (abs(expires_at) < 1e12),
    ttl_seconds REAL NOT NULL CHECK (ttl_seconds > 0 AND ttl_seconds < 1e12),
    revoked_by TEXT,
    revoked_reason TEXT,
    revoked_at REAL,
    CHECK ((revoked_by IS NULL) = (revoked_at IS NULL) AND (revoked_reason IS NULL) = (revoked_at IS NULL)),
    CHECK (revoked_at IS NULL OR expires_at IS NULL)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE lessor_fence (
    run_id TEXT NOT NULL PRIMARY KEY CHECK (run_id <> ''),
    fencing_token ${TOKEN},
    acquisition_id TEXT NOT NULL CHECK (acquisition_id <> '')
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE lessor_document (
    run_id TEXT NOT NULL PRIMARY KEY CHECK (run_id <> ''),
    version INTEGER NOT NULL CHECK (version > 0),
    json TEXT NOT NULL
  ) STRICT;

  ${keepsTokens('lessor_lease')}
  ${keepsTokens('lessor_fence')}
`;

/** REPLACE deletes without asking the trigger for deletions, so an insertion is looked at too. */
function keepsTokens(table: string): string {
  const refuse = `BEGIN SELECT RAISE(ABORT, '${table}: a row is never deleted and its token never lowered'); END;`;
  return `
  CREATE TRIGGER ${table}_keeps_row BEFORE DELETE ON ${table} ${refuse}
  CREATE TRIGGER ${table}_keeps_token BEFORE UPDATE OF run_id, fencing_token ON ${table}
    WHEN NEW.run_id <> OLD.run_id OR NEW.fencing_token < OLD.fencing_token ${refuse}
  CREATE TRIGGER ${table}_keeps_older BEFORE INSERT ON ${table}
    WHEN EXISTS (SELECT 1 FROM ${table} WHERE run_id = NEW.run_id AND fencing_token > NEW.fencing_token) ${refuse}`;
}

/** The file's marker, after making sure that its tables are there. Only a file that has none of them is counted from 1. */
export function installSchema(database: SqliteDatabase, name: string): string {
  checkVersion(database);
  if (snapshot(database, () => tablesOf(database)).length === 0) createSchema(database);
  return snapshot(database, () => checkSchema(database, name));
}

function checkSchema(database: SqliteDatabase, name: string): string {
  const tables = tablesOf(database);
  const missing = ['lessor_document', 'lessor_fence', 'lessor_lease', 'lessor_meta'].filter(
    (table) => !tables.includes(table),
  );
  if (missing.length > 0) throw stateLost(name, `it has no ${missing.join(' and no ')}`);
  const { marker, version } = readMeta(database);
  if (version > SCHEMA_VERSION) {
    throw new StoreUnavailableError(
      `The SQLite store ${name} was written by a newer lessor (schema ${version}, this one knows ${SCHEMA_VERSION}): upgrade`,
    );
  }
  if (marker === undefined || version !== SCHEMA_VERSION) throw stateLost(name, 'its marker is gone');
  return marker;
}

function checkVersion(database: SqliteDatabase): void {
  const { version } = database.prepare('SELECT sqlite_version() AS version').get() as { version: string };
  if (version.localeCompare(OLDEST_SQLITE, 'en', { numeric: true }) >= 0) return;
  throw new StoreUnavailableError(`Leases need SQLite ${OLDEST_SQLITE} or newer, the driver has ${version}`);
}

function createSchema(database: SqliteDatabase): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    // Another process may have been faster.
    if (tablesOf(database).length === 0) {
      database.exec(CREATE_SCHEMA);
      const keep = database.prepare('INSERT INTO lessor_meta (key, value) VALUES (?, ?)');
      keep.run('schema_version', String(SCHEMA_VERSION));
      keep.run('marker', randomUUID());
    }
    database.exec('COMMIT');
  } catch (error) {
    if (isInTransaction(database)) database.exec('ROLLBACK');
    throw error;
  }
}

function tablesOf(database: SqliteDatabase): string[] {
  const rows = database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all() as { name: string }[];
  return rows.map(({ name }) => name).filter((name) => name.startsWith('lessor_'));
}

function readMeta(database: SqliteDatabase): { readonly marker: string | undefined; readonly version: number } {
  const rows = database.prepare('SELECT key, value FROM lessor_meta').all() as { key: string; value: string }[];
  const values = new Map(rows.map(({ key, value }) => [key, value]));
  return { marker: values.get('marker'), version: Number(values.get('schema_version')) };
}
