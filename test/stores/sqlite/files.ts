/** Files of leases for a test, and connections to them with each driver that is installed. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { SqliteStore } from '../../../src/stores/sqlite.ts';
import type { SqliteDatabase } from '../../../src/stores/sqlite/database.ts';
import type { SqliteDriver } from '../../../src/stores/sqlite/drivers.ts';

export type DriverName = 'libsql' | 'better-sqlite3' | 'node:sqlite';

const requireHere = createRequire(import.meta.url);
const folder = mkdtempSync(join(tmpdir(), 'lessor-sqlite-'));
let files = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A file that does not exist yet. The folder of all of them goes away with the test file. */
export function newFile(): string {
  files += 1;
  return join(folder, `leases-${files}.db`);
}

/** Every driver, and why it cannot be tried here, where that is so. */
export const drivers: readonly { name: DriverName; missing: string | undefined }[] = [
  { name: 'libsql', missing: whyMissing('libsql') },
  { name: 'better-sqlite3', missing: whyMissing('better-sqlite3') },
  { name: 'node:sqlite', missing: whyMissing('node:sqlite') },
];

/** A connection as a user would open it: with the driver's own settings. */
export function connect(driver: DriverName, file: string): SqliteDatabase {
  const loaded: unknown = requireHere(driver);
  const Driver = driver === 'node:sqlite' ? (loaded as { DatabaseSync: SqliteDriver }).DatabaseSync : loaded;
  return new (Driver as SqliteDriver)(file);
}

export async function openFile(
  driver: DriverName,
  file: string,
  options: { readonly busyTimeoutSeconds?: number } = {},
): Promise<SqliteStore> {
  return SqliteStore.open({ database: connect(driver, file), ownsDatabase: true, ...options });
}

function whyMissing(driver: DriverName): string | undefined {
  try {
    const database = connect(driver, ':memory:');
    database.close();
    return undefined;
  } catch (error) {
    return `${driver} is not installed here, or does not load: ${(error as Error).message.split('\n')[0]}`;
  }
}
