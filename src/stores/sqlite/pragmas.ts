import type { SqliteDatabase } from './database.ts';
import type { Durability } from '../store.ts';
import { hasCheckpointBug } from './checkpoints.ts';

const NORMAL = 1;
const FULL = 2;
const EXTRA = 3;

/** What the connection's settings keep of an acknowledged grant. They are the user's, and are read, not changed. */
export function readDurability(database: SqliteDatabase, file: string): Durability {
  if (file === '')
    return { survives: 'nothing', warnings: ['The database is in memory: leases end with the process.'] };
  const mode = String(readPragma(database, 'journal_mode'));
  const synchronous = Number(readPragma(database, 'synchronous'));
  if (mode === 'off' || mode === 'memory') {
    return { survives: 'unknown', warnings: [`journal_mode = ${mode}: a crash may damage the file. Use WAL.`] };
  }
  const warnings: string[] = [];
  const enough = mode === 'delete' ? EXTRA : FULL;
  if (synchronous < enough) {
    warnings.push(`synchronous = ${synchronous}: a power loss may take the last grants. Use FULL with WAL.`);
  }
  const lazyFlush = process.platform === 'darwin' && Number(readPragma(database, 'fullfsync')) === 0;
  if (lazyFlush) warnings.push('fullfsync = 0: on macOS a power loss may take the last grants.');
  if (mode === 'wal' && hasCheckpointBug(database) && Number(readPragma(database, 'wal_autocheckpoint')) !== 0) {
    warnings.push('SQLite before 3.51.3: a rare race between two connections may damage the file.');
  }
  if (mode !== 'wal') warnings.push(`journal_mode = ${mode}: whoever reads keeps writers waiting. Use WAL.`);
  if (mode !== 'wal' && synchronous < NORMAL) warnings.push('A power loss may damage the file.');
  return { survives: synchronous < enough || lazyFlush ? 'process-crash' : 'power-loss', warnings };
}

/** Grants survive a power loss, and readers keep no writer waiting. */
export function makeDurable(database: SqliteDatabase): void {
  readPragma(database, 'journal_mode = WAL');
  database.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON');
}

/** The first value that a pragma gives. */
export function readPragma(database: SqliteDatabase, pragma: string): unknown {
  const row = database.prepare(`PRAGMA ${pragma}`).get() as Record<string, unknown> | undefined;
  return row && Object.values(row)[0];
}

/** The file of the connection's main database, or '' for one in memory. */
export function readFileName(database: SqliteDatabase): string {
  const rows = database.prepare('PRAGMA database_list').all() as { name: string; file: string | null }[];
  return rows.find(({ name }) => name === 'main')?.file ?? '';
}

/** Takes the connection's own wait for locks away for one step, since it would stop the event loop. */
export function withoutBlocking<Result>(database: SqliteDatabase, busyTimeout: number, step: () => Result): Result {
  if (busyTimeout === 0) return step();
  database.exec('PRAGMA busy_timeout = 0');
  try {
    return step();
  } finally {
    database.exec(`PRAGMA busy_timeout = ${busyTimeout}`);
  }
}

/** The file as errors name it. */
export function nameOf(file: string): string {
  return file === '' ? 'in memory' : JSON.stringify(file);
}
