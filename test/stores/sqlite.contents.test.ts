/** What stands in the file, and what hand-written SQL can do to it. */
import { copyFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { StoredLease } from '../../src/lease.ts';
import type { LeaseRecord } from '../../src/stores/store.ts';
import { connect, type DriverName, newFile, openFile } from './sqlite/files.ts';
import { describeDrivers, grant, openQuickly, withShared } from './sqlite/steps.ts';

describeDrivers('a file that somebody else writes to', testHands);
describeDrivers('what stands in the file', testContents);

function testHands(driver: DriverName): void {
  it('TK15 hand-written SQL can neither delete a row nor lower its token, in either table', async () => {
    await withShared(driver, async ({ store, database }) => {
      await grant(store);
      database.exec(`UPDATE lessor_lease SET fencing_token = 7`);
      database.exec(`INSERT INTO lessor_fence VALUES ('run', 5, 'mine')`);
      for (const table of ['lessor_lease', 'lessor_fence']) {
        const copy = table === 'lessor_lease' ? `'run', 'w', 4, 'a', 1, 2, 3, NULL, NULL, NULL` : `'run', 4, 'a'`;
        for (const sql of [
          `DELETE FROM ${table}`,
          `UPDATE ${table} SET fencing_token = fencing_token - 1`,
          `UPDATE ${table} SET run_id = 'other'`,
          `INSERT OR REPLACE INTO ${table} VALUES (${copy})`,
          `REPLACE INTO ${table} VALUES (${copy})`,
        ]) {
          expect(() => database.exec(sql), sql).toThrow(/never deleted/);
        }
      }
      expect(await store.currentFence('run')).toBe(7);
    });
  });

  it('AQ5 a planted row without an end, an owner or a right token is refused by the schema', async () => {
    await withShared(driver, async ({ store, database }) => {
      const plant = (columns: Record<string, string>): void => {
        const row = {
          run_id: `'run'`,
          worker_id: `'w'`,
          fencing_token: '1',
          acquisition_id: `'a'`,
          acquired_at: '1',
          expires_at: '2',
          ttl_seconds: '1',
          ...columns,
        };
        database.exec(`INSERT INTO lessor_lease (${Object.keys(row).join()}) VALUES (${Object.values(row).join()})`);
      };
      for (const columns of [
        { expires_at: '9e999' },
        { expires_at: `'soon'` },
        { worker_id: 'NULL' },
        { worker_id: `''` },
        { fencing_token: '0' },
        { fencing_token: '9007199254740992' },
        { fencing_token: '1.5' },
        { acquisition_id: 'NULL' },
        { ttl_seconds: 'NULL' },
      ]) {
        expect(() => plant(columns), JSON.stringify(columns)).toThrow(/constraint|cannot store/);
      }
      plant({ expires_at: 'NULL' });
      expect(await store.read('run')).toMatchObject({ state: 'free', expiresAt: null });
      expect(await grant(store)).toMatchObject({ fencingToken: 2 });
    });
  });

  it('TK14 B2 a new token is above the lease row and the fence row', async () => {
    await withShared(driver, async ({ store, database }) => {
      await store.release(await grant(store));
      database.exec(`INSERT INTO lessor_fence VALUES ('run', 41, 'planted'), ('never leased', 9, 'planted')`);
      expect(await store.currentFence('run')).toBe(41);
      expect(await store.read('run')).toMatchObject({ fence: 41, fencingToken: 1 });
      expect(await grant(store)).toMatchObject({ fencingToken: 42 });
      expect(await store.currentFence('never leased')).toBe(9);
      expect(await store.read('never leased')).toBeNull();
      expect(await grant(store, { runId: 'never leased' })).toMatchObject({ fencingToken: 10 });
    });
  });

  it('B4 the fence row of a token moves to the new acquisition, and that of another token stays', async () => {
    await withShared(driver, async ({ store, database }) => {
      const first = await grant(store);
      const old = await grant(store, { runId: 'old' });
      await store.release(old);
      await grant(store, { runId: 'old' });
      database.exec(
        `INSERT INTO lessor_fence VALUES ('run', 1, '${first.acquisitionId}'), ('old', 1, '${old.acquisitionId}')`,
      );
      const again = await grant(store);
      await grant(store, { runId: 'old' });
      expect(again).toMatchObject({ fencingToken: 1 });
      const rows = database.prepare('SELECT acquisition_id AS id FROM lessor_fence ORDER BY run_id').all();
      expect(rows).toMatchObject([{ id: old.acquisitionId }, { id: again.acquisitionId }]);
    });
  });

  it('B10 TK15 after the documented step a restored backup issues no token again', async () => {
    const file = newFile();
    const first = await openFile(driver, file);
    await first.release(await grant(first));
    await first.close();
    copyFileSync(file, `${file}.backup`);
    const second = await openFile(driver, file);
    const newest = await grant(second);
    expect(newest.fencingToken).toBe(2);
    await second.close();
    copyFileSync(`${file}.backup`, file);
    const hand = connect(driver, file);
    hand.exec('UPDATE lessor_lease SET fencing_token = fencing_token + 1000000, expires_at = NULL');
    hand.close();
    await using restored = await openFile(driver, file);
    expect((await grant(restored)).fencingToken).toBeGreaterThan(newest.fencingToken);
    expect(await restored.renew([newest], 30)).toEqual([{ status: 'lost', reason: 'superseded' }]);
  });
}

function testContents(driver: DriverName): void {
  it('OB1 a run that is held throughout is listed exactly once while others come and go, page by page', async () => {
    await using store = await openQuickly(driver);
    const held = [...Array(1000).keys()].map((number) => `held-${String(number).padStart(4, '0')}`);
    for (const runId of held) await grant(store, { runId });
    const listed: LeaseRecord[] = [];
    let others = 0;
    for await (const record of store.list()) {
      listed.push(record);
      if (listed.length % 20 !== 0) continue;
      others += 1;
      const other = await grant(store, { runId: `${others % 2 === 0 ? 'a' : 'held-0500-'}${others}` });
      if (others % 3 === 0) await store.release(other);
    }
    const seen = listed.map(({ runId }) => runId);
    expect(seen.filter((runId) => held.includes(runId))).toEqual(held);
    expect(new Set(seen).size).toBe(seen.length);
    for (const record of listed) {
      expect(record).not.toHaveProperty('acquisitionId');
      expect(record.remainingSeconds).toBeLessThanOrEqual(30);
    }
  });

  it('NM3 a prefix is no pattern, and runs come in the order of their bytes', async () => {
    await using store = await openFile(driver, newFile());
    const runIds = ['%', '%a', '_', 'a', 'a%', 'a%b', 'ab', '\uffff', '\u{1f600}', '\u{10ffff}', '\u{10ffff}x'];
    for (const runId of runIds) await grant(store, { runId });
    const list = async (prefix: string): Promise<string[]> => {
      const found: string[] = [];
      for await (const { runId } of store.list({ prefix })) found.push(runId);
      return found;
    };
    const byBytes = runIds.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
    expect(await list('')).toEqual(byBytes);
    expect(await list('%')).toEqual(['%', '%a']);
    expect(await list('a%')).toEqual(['a%', 'a%b']);
    expect(await list('_')).toEqual(['_']);
    expect(await list('\u{10ffff}')).toEqual(['\u{10ffff}', '\u{10ffff}x']);
    expect(await list('b')).toEqual([]);
  });

  it('NM2 B8 an expiry has whole milliseconds, and is never before the time of the grant plus the ttl', async () => {
    await using store = await openFile(driver, newFile());
    for (const ttlSeconds of [1.0004, 1.4999, 2.0001, 0.1 + 0.2, 1e-9, 0.001, 1.1, 4.35]) {
      const runId = `ttl ${ttlSeconds}`;
      const lease = await grant(store, { runId, ttlSeconds });
      const record = (await store.read(runId))!;
      const milliseconds = Math.round((lease.expiresAt - record.acquiredAt) * 1000);
      expect(milliseconds / 1000).toBeGreaterThanOrEqual(ttlSeconds);
      expect((milliseconds - 1) / 1000).toBeLessThan(ttlSeconds);
      expect(lease.expiresAt).toBe(Math.round(lease.expiresAt * 1000) / 1000);
      expect(record).toMatchObject({ expiresAt: lease.expiresAt, ttlSeconds });
    }
  });

  it('B5 10,000 leases are renewed in one call, each with its own answer', async () => {
    await using store = await openQuickly(driver);
    const leases: StoredLease[] = [];
    for (let number = 0; number < 10_000; number += 1) leases.push(await grant(store, { runId: `run-${number}` }));
    await store.release(leases[5000]!);
    const results = await store.renew(leases, 60);
    expect(results).toHaveLength(10_000);
    expect(results.map(({ status }) => status).filter((status) => status === 'renewed')).toHaveLength(9_999);
    expect(results[5000]).toEqual({ status: 'lost', reason: 'released' });
  });
}
