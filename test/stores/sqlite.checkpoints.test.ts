import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Libsql from 'libsql';
import { afterAll, describe, expect, it } from 'vitest';
import { openStore, SqliteStore } from '../../src/index.ts';

const folder = mkdtempSync(join(tmpdir(), 'lessor-checkpoints-'));
afterAll(() => rmSync(folder, { recursive: true }));

const ask = (runId: string) => ({ runId, workerId: 'a', acquisitionId: 'x', ttlSeconds: 60 });

describe('a driver whose SQLite may damage a file when a checkpoint meets a commit', () => {
  it('makes no checkpoints of its own, and the store’s keep the log short', async () => {
    const file = join(folder, 'owned.db');
    const database = new Libsql(file);
    await using store = await SqliteStore.open({ database, ownsDatabase: true });
    expect(database.prepare('PRAGMA wal_autocheckpoint').get()).toMatchObject({ wal_autocheckpoint: 0 });
    let longest = 0;
    for (let index = 0; index < 1100; index += 1) {
      await store.acquire(ask(`run-${index}`));
      longest = Math.max(longest, statSync(`${file}-wal`).size);
    }
    expect(statSync(`${file}-wal`).size).toBeLessThan(longest / 2);
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
    for (let index = 0; index < 60; index += 1) other.prepare('INSERT INTO t VALUES (zeroblob(100000))').run();
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(4_000_000);
    await using store = await openStore(`sqlite:${file}`);
    await store.read('run-1');
    expect(statSync(`${file}-wal`).size).toBeLessThan(1_000_000);
    other.close();
  });
});
