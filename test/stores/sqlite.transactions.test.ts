/** Calls that share a transaction, and what becomes of each when one of them, or the transaction's end, fails. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { OutcomeUnknownError } from '../../src/errors.ts';
import type { SqliteDatabase } from '../../src/stores/sqlite/database.ts';
import { commitTogether } from '../../src/stores/sqlite/transactions.ts';
import { SqliteStore } from '../../src/stores/sqlite.ts';
import { connect, type DriverName, newFile } from './sqlite/files.ts';
import { describeDrivers, grant, rejection, requestFor } from './sqlite/steps.ts';

describeDrivers('calls that share a transaction', testTransactions);

const runIds = ['run-1', 'run-2', 'run-3'];

function testTransactions(driver: DriverName): void {
  it('a crowd that writes in one turn of the event loop shares COMMITs, also when it writes again', async () => {
    await withCommits(driver, async ({ store, commits }) => {
      await Promise.all(
        [...Array(300).keys()].map(async (number) => {
          const lease = await grant(store, { runId: `run-${number}` });
          expect(await store.release(lease)).toBe(true);
        }),
      );
      expect(commits()).toBeLessThan(200);
    });
  });

  it('a run that is asked for often in one turn is granted once, and refused to the others', async () => {
    await withCommits(driver, async ({ store }) => {
      const asks = runIds.map((workerId) => store.acquire(requestFor({ workerId })));
      expect((await Promise.all(asks)).map(({ status }) => status)).toEqual(['granted', 'held', 'held']);
    });
  });

  it('B11 a call that is refused by the file takes no other one with it', async () => {
    await withCommits(driver, async ({ store }) => {
      const before = grant(store, { runId: 'before' });
      const refused = rejection(store.fenceTable('nothing', { run: 'id', token: 'token' }));
      const after = grant(store, { runId: 'after' });
      expect(await refused).toBeInstanceOf(RangeError);
      for (const lease of await Promise.all([before, after])) {
        expect(await store.renew([lease], 30)).toMatchObject([{ status: 'renewed' }]);
      }
    });
  });

  it('B11 a call whose signal aborts in the turn in which it was made is never applied', async () => {
    await withCommits(driver, async ({ store }) => {
      const controller = new AbortController();
      const acquiring = rejection(store.acquire(requestFor({}), { signal: controller.signal }));
      const other = grant(store, { runId: 'other' });
      controller.abort(new Error('given up'));
      expect((await acquiring).message).toBe('given up');
      await other;
      expect(await store.read('run')).toBeNull();
    });
  });

  it('B11 a COMMIT that fails in another way than by a lock is an unknown outcome, for each call in it', async () => {
    await withCommits(driver, async ({ store, failCommits }) => {
      failCommits(Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR', rawCode: 10 }));
      const errors = await Promise.all(runIds.map((runId) => rejection(store.acquire(requestFor({ runId })))));
      for (const error of errors) expect(error).toBeInstanceOf(OutcomeUnknownError);
      failCommits(undefined);
      expect(await grant(store)).toMatchObject({ fencingToken: 1 });
    });
  });

  it('B11 a COMMIT that finds a lock is tried again with each call in it, and each is applied once', async () => {
    await withCommits(driver, async ({ store, failCommits }) => {
      failCommits(Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY', rawCode: 5 }));
      const grants = Promise.all(runIds.map((runId) => grant(store, { runId })));
      await sleep(20);
      failCommits(undefined);
      expect((await grants).map(({ fencingToken }) => fencingToken)).toEqual([1, 1, 1]);
    });
  });

  it('B11 a step that throws is undone whole, and those before it are applied without it', () => {
    const database = connect(driver, newFile());
    database.exec('CREATE TABLE kept (id TEXT)');
    const keep = database.prepare('INSERT INTO kept VALUES (?)');
    const refusal = new Error('refused');
    const refuse = (): never => {
      keep.run('refused');
      throw refusal;
    };
    const steps = [() => keep.run('first') && 1, () => keep.run('second') && 2, refuse, () => keep.run('third')];
    expect(commitTogether(database, steps, 'here')).toEqual([{ value: 1 }, { value: 2 }]);
    expect(commitTogether(database, steps.slice(2), 'here')).toEqual([{ error: refusal }]);
    expect(database.prepare('SELECT id FROM kept').all()).toMatchObject([{ id: 'first' }, { id: 'second' }]);
    database.close();
  });
}

interface Counted {
  readonly store: SqliteStore;
  readonly commits: () => number;
  readonly failCommits: (error: Error | undefined) => void;
}

/** Runs the test with a store whose COMMITs since it was opened are counted, and can be made to fail. */
async function withCommits(driver: DriverName, test: (counted: Counted) => Promise<void>): Promise<void> {
  const real = connect(driver, newFile());
  let commits = 0;
  let failure: Error | undefined;
  const counted: SqliteDatabase = {
    exec(sql) {
      if (sql !== 'COMMIT') return real.exec(sql);
      commits += 1;
      if (failure) throw failure;
      return real.exec(sql);
    },
    prepare: (sql) => real.prepare(sql),
    close: () => real.close(),
    get inTransaction() {
      return real.inTransaction ?? real.isTransaction!;
    },
  };
  const store = await SqliteStore.open({ database: counted });
  commits = 0;
  try {
    await test({ store, commits: () => commits, failCommits: (error) => (failure = error) });
  } finally {
    await store.close();
    real.close();
  }
}
