/** What the tests of SQLite files do again and again. */
import { randomUUID } from 'node:crypto';
import { describe, it } from 'vitest';
import type { StoredLease } from '../../../src/lease.ts';
import type { SqliteDatabase } from '../../../src/stores/sqlite/database.ts';
import { SqliteStore } from '../../../src/stores/sqlite.ts';
import type { AcquireRequest, LeaseStore } from '../../../src/stores/store.ts';
import { connect, type DriverName, drivers, newFile, openFile } from './files.ts';

/** Defines the tests for each driver that is installed, and skips them for the others. */
export function describeDrivers(title: string, define: (driver: DriverName) => void): void {
  for (const { name, missing } of drivers) {
    if (missing === undefined)
      describe(`${title}, with ${name}`, () => {
        define(name);
      });
    else it.skip(`${title}, with ${name} (skipped: ${missing})`);
  }
}

/** A store for tests with many grants: it does not wait for the disk. */
export async function openQuickly(driver: DriverName): Promise<SqliteStore> {
  const database = connect(driver, newFile());
  const store = await SqliteStore.open({ database, ownsDatabase: true });
  database.exec('PRAGMA synchronous = OFF');
  return store;
}

export interface Locked {
  readonly store: SqliteStore;
  readonly file: string;
  readonly unlock: () => void;
}

/** Runs the test while another connection has the file's write lock. */
export async function withLock(
  driver: DriverName,
  options: { readonly busyTimeoutSeconds?: number },
  test: (locked: Locked) => Promise<void>,
): Promise<void> {
  const file = newFile();
  await using store = await openFile(driver, file, options);
  const locker = connect(driver, file);
  locker.exec('BEGIN IMMEDIATE');
  try {
    await test({ store, file, unlock: () => void locker.exec('COMMIT') });
  } finally {
    locker.close();
  }
}

/** Runs the test with a connection that both the test and the store use. */
export async function withShared(
  driver: DriverName,
  test: (shared: { store: SqliteStore; database: SqliteDatabase; file: string }) => Promise<void>,
): Promise<void> {
  const file = newFile();
  const database = connect(driver, file);
  const store = await SqliteStore.open({ database });
  try {
    await test({ store, database, file });
  } finally {
    await store.close();
    database.close();
  }
}

export async function rejection(call: Promise<unknown>): Promise<Error> {
  const error = await failure(call);
  if (error === undefined) throw new Error('Expected a rejection');
  return error;
}

export async function failure(call: Promise<unknown>): Promise<Error | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

export async function grant(store: LeaseStore, changes: Partial<AcquireRequest> = {}): Promise<StoredLease> {
  const result = await store.acquire(requestFor(changes));
  if (result.status !== 'granted') throw new Error(`Expected a grant, got ${JSON.stringify(result)}`);
  return result.lease;
}

export function requestFor(changes: Partial<AcquireRequest>): AcquireRequest {
  return { runId: 'run', workerId: 'worker', acquisitionId: randomUUID(), ttlSeconds: 30, ...changes };
}

export function ref(): StoredLease {
  const { runId, workerId, acquisitionId, ttlSeconds } = requestFor({});
  return { runId, workerId, acquisitionId, ttlSeconds, fencingToken: 1, leaseId: 'run:worker:1', expiresAt: 0 };
}
