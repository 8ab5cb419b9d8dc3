import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Libsql from 'libsql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore, SqliteStore } from '../../src/index.ts';

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'lessor-checkpoints-'))));
afterAll(() => rmSync(folder, { recursive: true }));

const ask = (runId: string) => ({ runId, workerId: 'a', acquisitionId: 'x', ttlSeconds: 60 });

/** How many pages are in the log since it began anew. */
function pagesInLog(database: InstanceType<typeof Libsql>): number {
  return (database.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() as { log: number }).log;
}

describe('a driver whose SQLite may damage a file when a checkpoint meets a commit', () => {
  it('makes no checkpoints of its own, and the store’s keep the log short', async () => {
    const file = join(folder, 'owned.db');
    const database = new Libsql(file);
    await using store = await SqliteStore.open({ database, ownsDatabase: true });
    expect(database.prepare('PRAGMA wal_autocheckpoint').get()).toMatchObject({ wal_autocheckpoint: 0 });
    // Without waiting for the disk.
    database.exec('PRAGMA synchronous = OFF');
    for (let index = 0; index < 990; index += 1) await store.acquire(ask(`run-${index}`));
    const beforeTheFirst = statSync(`${file}-wal`).size;
    for (let index = 990; index < 3200; index += 1) await store.acquire(ask(`run-${index}`));
    // Without a checkpoint it would be three times as long.
    expect(statSync(`${file}-wal`).size).toBeLessThan(beforeTheFirst * 2);
  }, 60_000);

  it('has its log kept short also when calls share transactions', async () => {
    const file = join(folder, 'crowd.db');
    await using store = await SqliteStore.open({ database: new Libsql(file), ownsDatabase: true });
    const crowd = (from: number) =>
      Promise.all([...Array(1000).keys()].map((index) => store.acquire(ask(`run-${from + index}`))));
    await crowd(0);
    const beforeTheSecond = statSync(`${file}-wal`).size;
    for (let from = 1000; from < 6000; from += 1000) await crowd(from);
    expect(statSync(`${file}-wal`).size).toBeLessThan(beforeTheSecond * 3);
  }, 60_000);

  it('is reported where the connection is the user’s', async () => {
    const database = new Libsql(join(folder, 'given.db'));
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    await using store = await SqliteStore.open({ database });
    expect(store.durability.warnings.join()).toContain('3.51.3');
    database.close();
  });

  it('finds a log that others have left long, and writes it back', async () => {
    const file = join(folder, 'long.db');
    const other = new Libsql(file);
    other.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (x)');
    for (let index = 0; index < 120; index += 1) other.prepare('INSERT INTO t VALUES (zeroblob(100000))').run();
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(10_000_000);
    await using store = await openStore(`sqlite:${file}`);
    await store.acquire(ask('run-1'));
    // The log starts anew with the first write after it was written back.
    expect(pagesInLog(other)).toBeLessThan(100);
    other.close();
  });
});
