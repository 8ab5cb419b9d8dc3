/** Locks on the file, and transactions of whoever shares the connection. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { StoreUnavailableError } from '../../src/errors.ts';
import type { SqliteDatabase } from '../../src/stores/sqlite/database.ts';
import { SqliteStore } from '../../src/stores/sqlite.ts';
import { connect, type DriverName, newFile, openFile } from './sqlite/files.ts';
import { describeDrivers, grant, ref, rejection, requestFor, withLock, withShared } from './sqlite/steps.ts';

describeDrivers('a file locked by another connection', testLocks);
describeDrivers('a connection that its user shares with the store', testSharing);

function testLocks(driver: DriverName): void {
  it('AQ6 a lock that outlasts `busyTimeoutSeconds` is told as unavailable, with the cause, and nothing was applied', async () => {
    await withLock(driver, { busyTimeoutSeconds: 0.1 }, async ({ store, unlock }) => {
      const error = await rejection(store.acquire(requestFor({})));
      expect(error).toBeInstanceOf(StoreUnavailableError);
      expect(error.message).toMatch(/locked/);
      expect(error.cause).toBeInstanceOf(Error);
      unlock();
      expect(await store.read('run')).toBeNull();
      expect((await grant(store)).fencingToken).toBe(1);
    });
  });

  it('B11 a call whose signal aborts while it waits rejects with the reason, and is never applied', async () => {
    await withLock(driver, {}, async ({ store, unlock }) => {
      const controller = new AbortController();
      const acquiring = rejection(store.acquire(requestFor({}), { signal: controller.signal }));
      await sleep(20);
      controller.abort(new Error('given up'));
      expect((await acquiring).message).toBe('given up');
      unlock();
      await sleep(50);
      expect(await store.read('run')).toBeNull();
    });
  });

  it('B15 closing ends every wait at once', async () => {
    await withLock(driver, {}, async ({ store }) => {
      const waiting = [rejection(store.acquire(requestFor({}))), rejection(store.renew([ref()], 30))];
      await sleep(20);
      const ended = Promise.all(waiting);
      await store.close();
      const atOnce = await Promise.race([ended, new Promise<Error[]>((resolve) => setImmediate(resolve, []))]);
      expect(atOnce).toHaveLength(2);
      for (const error of atOnce) expect(error).toBeInstanceOf(StoreUnavailableError);
    });
  });

  it('SQ1 a crowd that waits for the lock is served in full once it is free, and the event loop gets its turns', async () => {
    await withLock(driver, {}, async ({ store, unlock }) => {
      const grants = [...Array(3000).keys()].map((number) => grant(store, { runId: `run-${number}` }));
      await sleep(50);
      unlock();
      let turns = 0;
      const timer = setInterval(() => (turns += 1), 1);
      const tokens = (await Promise.all(grants)).map(({ fencingToken }) => fencingToken);
      clearInterval(timer);
      expect(tokens).toEqual(tokens.map(() => 1));
      expect(turns).toBeGreaterThan(2);
    });
  });

  it('B14 a call that found a lock leaves no old state behind: what is read after it is what was committed since', async () => {
    await withLock(driver, { busyTimeoutSeconds: 0.05 }, async ({ store, file, unlock }) => {
      expect(await rejection(store.acquire(requestFor({})))).toBeInstanceOf(StoreUnavailableError);
      unlock();
      await using other = await openFile(driver, file);
      await grant(other);
      expect(await store.read('run')).toMatchObject({ state: 'held' });
    });
  });
}

function testSharing(driver: DriverName): void {
  it('B15 the store waits while its user has a transaction open, so that a rollback takes no grant with it', async () => {
    await withShared(driver, async ({ store, database }) => {
      database.exec('CREATE TABLE mine (id INTEGER) STRICT');
      database.exec('BEGIN; INSERT INTO mine VALUES (1)');
      const acquiring = grant(store);
      const reading = store.read('run');
      await sleep(50);
      database.exec('ROLLBACK');
      expect((await acquiring).fencingToken).toBe(1);
      await reading;
      expect(await store.read('run')).toMatchObject({ state: 'held' });
      expect(database.prepare('SELECT count(*) AS rows FROM mine').get()).toMatchObject({ rows: 0 });
    });
  });

  it('SQ1 a connection that waits for locks by itself does not stop the event loop, and keeps its own timeout', async () => {
    await withShared(driver, async ({ store, database, file }) => {
      database.exec('PRAGMA busy_timeout = 4000');
      await using other = await SqliteStore.open({ database });
      const locker = connect(driver, file);
      locker.exec('BEGIN IMMEDIATE');
      const startedAt = performance.now();
      const acquiring = grant(other);
      expect(performance.now() - startedAt).toBeLessThan(2000);
      locker.exec('COMMIT');
      locker.close();
      await acquiring;
      expect(database.prepare('PRAGMA busy_timeout').get()).toMatchObject({ timeout: 4000 });
      expect(await store.read('run')).toMatchObject({ state: 'held' });
    });
  });

  it('B15 closing a store leaves a connection open that was given, and one that it owns closed', async () => {
    const database = connect(driver, newFile());
    const shared = await SqliteStore.open({ database });
    await shared.close();
    expect(database.prepare('SELECT 1 AS one').get()).toMatchObject({ one: 1 });
    const owner = await SqliteStore.open({ database, ownsDatabase: true });
    await owner.close();
    await owner.close();
    expect(() => database.exec('SELECT 1')).toThrow(/not open/);
  });

  it('B9 what a connection can lose is read from its settings', async () => {
    const survives = async (file: string, pragmas: string, ownsDatabase = false): Promise<string> => {
      const database = connect(driver, file);
      if (pragmas !== '') database.exec(pragmas);
      await using store = await SqliteStore.open({ database, ownsDatabase });
      const { survives: level, warnings } = store.durability;
      const settings = warnings.filter((warning) => !warning.includes('before 3.51.3'));
      expect(settings.length > 0).toBe(level !== 'power-loss');
      if (!ownsDatabase) database.close();
      return level;
    };
    const file = newFile();
    expect(await survives(file, '', true)).toBe('power-loss');
    expect(await survives(file, 'PRAGMA synchronous = FULL')).toBe('power-loss');
    expect(await survives(file, 'PRAGMA synchronous = NORMAL')).toBe('process-crash');
    expect(await survives(':memory:', '')).toBe('nothing');
  });

  it('PK2 what is no connection is refused before anything is asked of it', async () => {
    for (const database of [undefined, null, {}, 'leases.db', { exec: () => undefined, prepare: () => undefined }]) {
      await expect(SqliteStore.open({ database: database as unknown as SqliteDatabase })).rejects.toThrow(TypeError);
    }
    const closed = connect(driver, newFile());
    closed.close();
    await expect(SqliteStore.open({ database: closed })).rejects.toThrow(StoreUnavailableError);
    for (const busyTimeoutSeconds of [0, -1, Number.NaN]) {
      await expect(openFile(driver, newFile(), { busyTimeoutSeconds })).rejects.toThrow(RangeError);
    }
  });
}
