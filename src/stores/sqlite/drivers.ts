import { StoreUnavailableError } from '../../errors.ts';
import type { SqliteDatabase } from './database.ts';

export type SqliteDriver = new (file: string) => SqliteDatabase;

/** The user's own driver first; then the one that comes along with this package; then Node's, where Node has one. */
const DRIVERS = [
  { name: 'better-sqlite3', member: 'default' },
  { name: 'libsql', member: 'default' },
  { name: 'node:sqlite', member: 'DatabaseSync' },
] as const;

/**
 * Loads the first driver that works here.
 *
 * @throws StoreUnavailableError when there is none. It says what to install, and `cause` has what each one said.
 */
export async function loadSqliteDriver(): Promise<SqliteDriver> {
  const errors: unknown[] = [];
  for (const { name, member } of DRIVERS) {
    try {
      const Driver = ((await import(name)) as Record<string, SqliteDriver>)[member]!;
      // A driver whose binary is missing says so only now.
      new Driver(':memory:').close();
      return Driver;
    } catch (error) {
      errors.push(error);
    }
  }
  throw new StoreUnavailableError(
    'No SQLite driver works here. Install one: `npm install libsql` (no compiler needed) or `npm install better-sqlite3@12`',
    { cause: new AggregateError(errors) },
  );
}
