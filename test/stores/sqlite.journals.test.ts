/** Files without WAL, as SQLite makes them unasked: there a commit waits for whoever reads, and a read for whoever commits. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { StoreUnavailableError } from '../../src/errors.ts';
import type { SqliteDatabase } from '../../src/stores/sqlite/database.ts';
import { SqliteStore } from '../../src/stores/sqlite.ts';
import { connect, type DriverName, newFile } from './sqlite/files.ts';
import { describeDrivers, grant, rejection, requestFor } from './sqlite/steps.ts';

describeDrivers('a file without WAL', testJournals);

function testJournals(driver: DriverName): void {
  it('B11 a COMMIT that finds readers in the way is undone and tried again: applied once, or not at all', async () => {
    await withJournal(driver, async ({ store, impatient, other }) => {
      expect(store.durability.warnings.join()).toMatch(/journal_mode = delete/);
      other.exec('BEGIN');
      other.prepare('SELECT * FROM lessor_lease').all();
      expect(await rejection(impatient.acquire(requestFor({})))).toBeInstanceOf(StoreUnavailableError);
      const acquiring = Promise.all([grant(store), grant(store, { runId: 'another' })]);
      await sleep(30);
      other.exec('COMMIT');
      expect((await acquiring).map(({ fencingToken }) => fencingToken)).toEqual([1, 1]);
    });
  });

  it('SQ1 a store that waits for the lock keeps nobody from committing', async () => {
    await withJournal(driver, async ({ store, other }) => {
      other.exec('BEGIN IMMEDIATE');
      const acquiring = grant(store);
      await sleep(20);
      other.exec('COMMIT');
      expect((await acquiring).fencingToken).toBe(1);
    });
  });

  it('SQ1 nor does one that has given up', async () => {
    await withJournal(driver, async ({ impatient, other }) => {
      other.exec('BEGIN IMMEDIATE');
      expect(await rejection(impatient.acquire(requestFor({})))).toBeInstanceOf(StoreUnavailableError);
      other.exec('COMMIT');
    });
  });

  it('B14 a read that found a lock answers for its own run the next time, and keeps nobody from committing', async () => {
    await withJournal(driver, async ({ store, impatient, other }) => {
      await grant(store, { runId: 'run-a' });
      other.exec('BEGIN EXCLUSIVE');
      expect(await rejection(impatient.read('run-a'))).toBeInstanceOf(StoreUnavailableError);
      other.exec('COMMIT');
      expect(await impatient.read('run-b')).toBeNull();
      other.exec('BEGIN EXCLUSIVE; COMMIT');
      expect(await grant(store, { runId: 'run-b' })).toMatchObject({ runId: 'run-b', fencingToken: 1 });
    });
  });

  it('B14 an opening that found a lock keeps nobody from committing', async () => {
    await withJournal(driver, async ({ other, database }) => {
      other.exec('BEGIN EXCLUSIVE');
      const opening = SqliteStore.open({ database });
      await sleep(20);
      other.exec('COMMIT');
      await (await opening).read('run');
      other.exec('BEGIN EXCLUSIVE; COMMIT');
    });
  });

  it('B14 an opening that gave up before a lock keeps nobody from committing', async () => {
    await withJournal(driver, async ({ impatient, other, database }) => {
      other.exec('BEGIN EXCLUSIVE');
      const error = await rejection(SqliteStore.open({ database, busyTimeoutSeconds: 0.02 }));
      expect(error).toBeInstanceOf(StoreUnavailableError);
      other.exec('COMMIT');
      expect(await impatient.read('run')).toBeNull();
      other.exec('BEGIN EXCLUSIVE; COMMIT');
    });
  });
}

/** Runs the test with two stores on one connection to such a file, and another connection to it. */
async function withJournal(
  driver: DriverName,
  test: (opened: {
    store: SqliteStore;
    impatient: SqliteStore;
    database: SqliteDatabase;
    other: SqliteDatabase;
  }) => Promise<void>,
): Promise<void> {
  const file = newFile();
  const [database, other] = [connect(driver, file), connect(driver, file)];
  database.prepare('PRAGMA journal_mode = DELETE').get();
  const store = await SqliteStore.open({ database });
  const impatient = await SqliteStore.open({ database, busyTimeoutSeconds: 0.05 });
  try {
    await test({ store, impatient, database, other });
  } finally {
    database.close();
    other.close();
  }
}
