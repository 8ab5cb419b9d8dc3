/** Files that cannot be used, are gone, replaced or of another version. */
import { renameSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { StateLostError, StoreUnavailableError } from '../../src/errors.ts';
import { SqliteStore } from '../../src/stores/sqlite.ts';
import { connect, type DriverName, newFile, openFile } from './sqlite/files.ts';
import { describeDrivers, failure, grant, ref, rejection, requestFor, withShared } from './sqlite/steps.ts';

describeDrivers('a file that fails', testFailures);

function testFailures(driver: DriverName): void {
  it('AQ6 a file that may not be written, or cannot grow, is unavailable with the cause, and works again afterwards', async () => {
    await withShared(driver, async ({ store, database }) => {
      const trouble = {
        'PRAGMA query_only = ON': 'PRAGMA query_only = OFF',
        'PRAGMA max_page_count = 1': 'PRAGMA max_page_count = 100000',
      };
      for (const [begin, end] of Object.entries(trouble)) {
        database.exec(begin);
        const errors = await Promise.all(
          [...Array(200).keys()].map((number) => failure(store.acquire(requestFor({ runId: `${begin} ${number}` })))),
        );
        const last = errors.at(-1);
        expect(last).toBeInstanceOf(StoreUnavailableError);
        expect(last!.cause).toBeInstanceOf(Error);
        database.exec(end);
        expect(await store.read(`${begin} 199`)).toBeNull();
        expect((await grant(store, { runId: `${begin} 199` })).fencingToken).toBe(1);
      }
    });
  });

  it('AQ6 a file that is no database, and a folder, are refused at opening', async () => {
    const file = newFile();
    writeFileSync(file, 'not a database at all. '.repeat(500));
    const database = connect(driver, file);
    const error = await rejection(SqliteStore.open({ database, ownsDatabase: true }));
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error.message).toMatch(/not a .*database/);
    database.close();
  });

  it('B14 a file that is gone is unavailable, and is the store again when it comes back', async () => {
    const file = newFile();
    await using store = await openFile(driver, file);
    await grant(store);
    renameSync(file, `${file}.away`);
    const error = await rejection(store.read('run'));
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error.message).toMatch(/is gone/);
    renameSync(`${file}.away`, file);
    expect(await store.read('run')).toMatchObject({ state: 'held' });
  });

  it('B10 a file that another one has replaced is lost state, until the store is opened anew', async () => {
    const file = newFile();
    await using store = await openFile(driver, file);
    await grant(store);
    const suffixes = ['', '-wal', '-shm'];
    for (const suffix of suffixes) renameSync(`${file}${suffix}`, `${file}.away${suffix}`);
    await using fresh = await openFile(driver, file);
    expect(await fresh.currentFence('run')).toBe(0);
    expect(await rejection(store.acquire(requestFor({})))).toBeInstanceOf(StateLostError);
    // Also when the old file comes back: what was granted meanwhile stands in the other one.
    for (const suffix of suffixes) renameSync(`${file}.away${suffix}`, `${file}${suffix}`);
    expect(await rejection(store.renew([ref()], 30))).toBeInstanceOf(StateLostError);
  });

  it('B10 tables that were dropped, or made anew, are lost state', async () => {
    const file = newFile();
    await using store = await openFile(driver, file);
    await grant(store);
    const hand = connect(driver, file);
    hand.exec('DROP TABLE lessor_fence');
    expect(await rejection(store.acquire(requestFor({})))).toBeInstanceOf(StateLostError);
    const half = connect(driver, file);
    expect(await rejection(SqliteStore.open({ database: half }))).toBeInstanceOf(StateLostError);
    hand.exec('DROP TABLE lessor_lease; DROP TABLE lessor_document; DROP TABLE lessor_meta');
    await (await SqliteStore.open({ database: half })).close();
    expect(await rejection(store.read('run'))).toBeInstanceOf(StateLostError);
    expect(await rejection(store.list()[Symbol.asyncIterator]().next())).toBeInstanceOf(StateLostError);
    hand.close();
    half.close();
  });

  it('B10 a release frees nothing in a file whose marker is another', async () => {
    const file = newFile();
    await using store = await openFile(driver, file);
    const lease = await grant(store);
    const hand = connect(driver, file);
    hand.exec(`UPDATE lessor_meta SET value = 'another' WHERE key = 'marker'`);
    expect(await rejection(store.release(lease))).toBeInstanceOf(StateLostError);
    const row = hand.prepare('SELECT expires_at AS expiresAt FROM lessor_lease').get();
    expect(row).toMatchObject({ expiresAt: lease.expiresAt });
    hand.close();
  });

  it('a file that a newer version wrote is refused with what to do', async () => {
    const file = newFile();
    await (await openFile(driver, file)).close();
    const hand = connect(driver, file);
    hand.exec(`UPDATE lessor_meta SET value = '2' WHERE key = 'schema_version'`);
    const error = await rejection(SqliteStore.open({ database: hand }));
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error.message).toMatch(/newer lessor.*upgrade/);
    hand.close();
  });

  it('B14 a connection that its user has closed is unavailable', async () => {
    const database = connect(driver, newFile());
    const store = await SqliteStore.open({ database });
    database.close();
    expect(await rejection(store.acquire(requestFor({})))).toBeInstanceOf(StoreUnavailableError);
    await store.close();
  });
}
