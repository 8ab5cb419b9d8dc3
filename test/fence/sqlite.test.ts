/** The fence in transactions of the user's own on SQLite, with every driver that is installed. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StoredLease } from '../../src/index.ts';
import type { SqliteDatabase } from '../../src/stores/sqlite/database.ts';
import { SqliteStore } from '../../src/stores/sqlite.ts';
import { connect, drivers, newFile, openFile } from '../stores/sqlite/files.ts';
import { acquire, codeOf, errorOf, lost } from './leases.ts';

const TTL_SECONDS = 0.2;

describe.each(drivers.filter(({ missing }) => missing === undefined))('the fence on SQLite by $name', ({ name }) => {
  let file: string;
  let store: SqliteStore;
  let tx: SqliteDatabase;

  beforeEach(async () => {
    file = newFile();
    store = await openFile(name, file);
    tx = connect(name, file);
    tx.exec(`CREATE TABLE job (id TEXT PRIMARY KEY, status TEXT); INSERT INTO job VALUES ('job-1', 'new')`);
  });

  afterEach(async () => {
    tx.close();
    await store.close();
  });

  /** One fenced transaction that writes the status. */
  function write(lease: StoredLease, status: string, begin = 'BEGIN IMMEDIATE'): void {
    tx.exec(begin);
    try {
      store.fence(tx, lease);
      tx.prepare('UPDATE job SET status = ?').run(status);
      tx.exec('COMMIT');
    } catch (error) {
      tx.exec('ROLLBACK');
      throw error;
    }
  }

  const status = (): unknown => (tx.prepare('SELECT status FROM job').get() as { status: unknown }).status;

  async function takeOver(): Promise<{ late: StoredLease; next: StoredLease }> {
    const late = await acquire(store, 'job-1', 'worker-a', TTL_SECONDS);
    write(late, 'running');
    await sleep(TTL_SECONDS * 1000 + 5);
    return { late, next: await acquire(store, 'job-1', 'worker-b') };
  }

  it('B18 TK2 a late worker is refused although the newer one has written nothing', async () => {
    const { late } = await takeOver();
    expect(errorOf(() => write(late, 'late'))).toEqual(lost('superseded'));
    expect(status()).toBe('running');
  });

  it('B17 TK2 a late worker is refused once the newer one has written', async () => {
    const { late, next } = await takeOver();
    write(next, 'done');
    expect(errorOf(() => write(late, 'late'))).toEqual(lost('superseded'));
    expect(status()).toBe('done');
  });

  it('B19 TK7 the owner writes twice, after a renewal again, and after its expiry while nobody took over', async () => {
    const lease = await acquire(store, 'job-1', 'worker-a', TTL_SECONDS);
    write(lease, 'one');
    write(lease, 'two', 'BEGIN');
    await store.renew([lease], TTL_SECONDS);
    write(lease, 'three');
    await sleep(TTL_SECONDS * 1000 + 5);
    write(lease, 'late but alone');
    expect(status()).toBe('late but alone');
  });

  it('B19 a released lease does not pass, nor a revoked one', async () => {
    const released = await acquire(store, 'job-1', 'worker-a');
    write(released, 'new');
    await store.release(released);
    expect(errorOf(() => write(released, 'x'))).toEqual(lost('released'));
    const revoked = await acquire(store, 'job-1', 'worker-a');
    await store.revoke('job-1', { by: 'operator', reason: 'stuck' });
    expect(errorOf(() => write(revoked, 'x'))).toEqual(lost('revoked'));
    expect(status()).toBe('new');
  });

  it('B4 TK8 a second handle of the same worker cuts off the first, and passes itself', async () => {
    const first = await acquire(store, 'job-1', 'worker-a');
    write(first, 'first');
    const second = await acquire(store, 'job-1', 'worker-a');
    expect(errorOf(() => write(first, 'again'))).toEqual(lost('superseded'));
    write(second, 'second');
    expect(status()).toBe('second');
  });

  it('B19 a token of another run, from the future, of another worker, or none at all is refused', async () => {
    const lease = await acquire(store, 'job-1', 'worker-a');
    const other = await acquire(store, 'job-2', 'worker-a');
    expect(errorOf(() => write({ ...lease, fencingToken: 9 }, 'x'))).toEqual(lost('unknown'));
    expect(errorOf(() => write({ ...lease, workerId: 'worker-b' }, 'x'))).toEqual(lost('unknown'));
    expect(errorOf(() => write({ ...other, runId: 'job-3' }, 'x'))).toEqual(lost('unknown'));
    expect(errorOf(() => write({ ...lease, acquisitionId: other.acquisitionId }, 'x'))).toEqual(lost('superseded'));
    const none = { ...lease, fencingToken: undefined } as unknown as StoredLease;
    expect(errorOf(() => write(none, 'x'))).toBeInstanceOf(TypeError);
    expect(status()).toBe('new');
  });

  it('B16 a refusal leaves the transaction open and has changed nothing in it; a rollback undoes what was raised', async () => {
    const { late, next } = await takeOver();
    tx.exec('BEGIN');
    expect(errorOf(() => store.fence(tx, late))).toEqual(lost('superseded'));
    tx.exec('ROLLBACK');
    tx.exec('BEGIN');
    store.fence(tx, next);
    tx.exec('ROLLBACK');
    expect(tx.prepare('SELECT fencing_token AS token FROM lessor_fence').get()).toMatchObject({ token: 1 });
  });

  it.each([
    ['raised', false],
    ['only looked at', true],
  ])('B18 a deferred transaction has the lock from its fence on, when that was %s', async (_how, isRaised) => {
    const { next } = await takeOver();
    if (isRaised) write(next, 'earlier');
    const late = connect(name, file);
    late.exec('PRAGMA busy_timeout = 0; BEGIN');
    tx.exec('BEGIN');
    store.fence(tx, next);
    expect(codeOf(() => late.exec(`UPDATE job SET status = 'late'`))).toContain('BUSY');
    tx.exec(`UPDATE job SET status = 'done'; COMMIT`);
    late.exec('ROLLBACK');
    late.close();
    expect(status()).toBe('done');
  });

  it('B22 a transaction that had read before another one wrote is a conflict, and not written', async () => {
    const { next } = await takeOver();
    tx.exec('BEGIN');
    status();
    const other = connect(name, file);
    other.exec(`UPDATE job SET status = 'by another'`);
    other.close();
    expect(errorOf(() => store.fence(tx, next))).toMatchObject({ code: 'CONFLICT', retryable: true });
    tx.exec('ROLLBACK');
    write(next, 'done');
  });

  it('B20 while the file is locked the fence is unavailable, not lost, within the connection’s own busy_timeout', async () => {
    const lease = await acquire(store, 'job-1', 'worker-a');
    const other = connect(name, file);
    other.exec('BEGIN IMMEDIATE');
    tx.exec('PRAGMA busy_timeout = 20; BEGIN');
    expect(errorOf(() => store.fence(tx, lease))).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    tx.exec('ROLLBACK');
    other.exec('ROLLBACK');
    other.close();
    write(lease, 'after');
  });

  it('TK14 at an equal token another acquisition is refused, and a token is above a planted fence', async () => {
    const lease = await acquire(store, 'job-1', 'worker-a');
    write(lease, 'first');
    tx.prepare('UPDATE lessor_lease SET acquisition_id = ?').run('planted');
    expect(errorOf(() => write({ ...lease, acquisitionId: 'planted' }, 'second'))).toEqual(lost('superseded'));
    tx.exec(`UPDATE lessor_fence SET fencing_token = 40`);
    expect(errorOf(() => write({ ...lease, acquisitionId: 'planted' }, 'third'))).toEqual(lost('superseded'));
    await store.revoke('job-1', { by: 'operator', reason: 'planted' });
    const next = await acquire(store, 'job-1', 'worker-b');
    expect(next.fencingToken).toBe(41);
    write(next, 'fourth');
  });

  it('I a connection outside a transaction, a closed one, one to another file and what is none are TypeErrors', async () => {
    const lease = await acquire(store, 'job-1', 'worker-a');
    expect(errorOf(() => store.fence(tx, lease))).toMatchObject({
      message: expect.stringContaining('BEGIN IMMEDIATE'),
    });
    const bare = connect(name, newFile());
    bare.exec('BEGIN');
    expect(errorOf(() => store.fence(bare, lease))).toBeInstanceOf(TypeError);
    bare.exec('ROLLBACK');
    bare.close();
    expect(errorOf(() => store.fence(bare, lease))).toMatchObject({ message: expect.stringContaining('closed') });
    const otherFile = newFile();
    await using elsewhere = await openFile(name, otherFile);
    await acquire(elsewhere, 'job-1', 'worker-a');
    const other = connect(name, otherFile);
    other.exec('BEGIN');
    expect(errorOf(() => store.fence(other, lease))).toMatchObject({ message: expect.stringContaining('the file of') });
    other.exec('ROLLBACK');
    other.close();
    for (const wrong of [undefined, null, 7, {}, store]) {
      expect(errorOf(() => store.fence(wrong as never, lease))).toBeInstanceOf(TypeError);
    }
  });

  it('the store’s own connection may be the transaction’s, and the statements are prepared once', async () => {
    const shared = connect(name, newFile());
    const own = await SqliteStore.open({ database: shared });
    const lease = await acquire(own, randomUUID(), 'worker-a');
    let prepared = 0;
    const counted = new Proxy(shared, {
      get: (target, key) => {
        const value: unknown = Reflect.get(target, key);
        if (typeof value !== 'function') return value;
        return (...values: unknown[]) => {
          if (key === 'prepare') prepared += 1;
          return value.apply(target, values) as unknown;
        };
      },
    });
    const once: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      shared.exec('BEGIN');
      own.fence(counted, lease);
      shared.exec('COMMIT');
      once.push(prepared);
    }
    expect(new Set(once).size).toBe(1);
    await own.close();
    shared.close();
  });
});
