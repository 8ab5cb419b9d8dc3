/** Many processes on one file, also with two drivers at once: races, crashes, locks. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { StoredLease } from '../../src/lease.ts';
import type { SqliteStore } from '../../src/stores/sqlite.ts';
import type { AcquireRequest, AcquireResult } from '../../src/stores/store.ts';
import { startChild } from './sqlite/child.ts';
import { connect, type DriverName, drivers, newFile, openFile } from './sqlite/files.ts';
import { describeDrivers, grant, requestFor } from './sqlite/steps.ts';

/** More for a release. */
const ROUNDS = Number(process.env['LESSOR_ROUNDS'] ?? 60);
const KILLS = Number(process.env['LESSOR_KILLS'] ?? 12);
const RACERS = 8;
const LOCK_SECONDS = 2;
const MINUTES = 60_000;

const installed = drivers.filter(({ missing }) => missing === undefined).map(({ name }) => name);

describeDrivers('many processes', testProcesses);

describe('processes with every driver that is installed, on one file', () => {
  it(
    'TK1 of 8 processes one takes over in every round, whatever their drivers',
    async () => {
      await raceRounds((number) => installed[number % installed.length]!, {});
    },
    MINUTES,
  );
});

function testProcesses(driver: DriverName): void {
  it(
    'TK1 of 8 processes that find the same expired run, one takes it over, with a token of its own',
    async () => {
      await raceRounds(() => driver, {});
    },
    MINUTES,
  );

  it(
    'TK1 of 8 processes under one worker id with `refuse`, one takes the expired run over',
    async () => {
      await raceRounds(() => driver, { workerId: 'worker', reacquire: 'refuse' });
    },
    MINUTES,
  );

  it(
    'TK10 AQ5 a worker killed at any point leaves no half lease: its run is free after the ttl, with a higher token',
    async () => {
      const ttlSeconds = 0.3;
      const file = newFile();
      await using store = await openFile(driver, file);
      let highest = 0;
      for (let kill = 0; kill < KILLS; kill += 1) {
        const child = await startChild(driver, file);
        child.on(
          'granted',
          ({ fencingToken }: { fencingToken: number }) => (highest = Math.max(highest, fencingToken)),
        );
        void child.ask('churn', 'run', ttlSeconds);
        await once(child, 'granted');
        await sleep(Math.random() * 40);
        await child.kill();
        const left = await store.read('run');
        const lease = await takeOver(store, ttlSeconds);
        expect(lease.fencingToken).toBeGreaterThan(Math.max(highest, left!.fencingToken));
        if (left!.state === 'held')
          expect(lease.expiresAt - ttlSeconds).toBeGreaterThanOrEqual(left!.expiresAt! - 1e-6);
        highest = lease.fencingToken;
        expect(await store.release(lease)).toBe(true);
      }
      const database = connect(driver, file);
      expect(Object.values(database.prepare('PRAGMA integrity_check').get() as object)).toContain('ok');
      database.close();
    },
    2 * MINUTES,
  );

  it('AQ4 a fresh process judges a lease of a crashed one by its stored expiry, at the first ask', async () => {
    const file = newFile();
    const crashed = await startChild(driver, file);
    const first = await crashed.ask<AcquireResult>('call', 'acquire', requestFor({ ttlSeconds: 2 }));
    await crashed.kill();
    const fresh = await startChild(driver, file);
    const impatient = requestFor({ workerId: 'impatient', ttlSeconds: 0.1 });
    expect(await fresh.ask('call', 'acquire', impatient)).toMatchObject({ status: 'held', fencingToken: 1 });
    const { lease } = first as { lease: StoredLease };
    while (Date.now() / 1000 <= lease.expiresAt) await sleep(10);
    const another = await startChild(driver, file);
    expect(await another.ask('call', 'acquire', impatient)).toMatchObject({ lease: { fencingToken: 2 } });
  });

  it('B9 leases and tokens are kept when every process has ended', async () => {
    const file = newFile();
    const one = await startChild(driver, file);
    await one.ask('call', 'acquire', requestFor({ runId: 'held' }));
    const { lease } = await one.ask<{ lease: StoredLease }>('call', 'acquire', requestFor({ runId: 'freed' }));
    await one.ask('call', 'release', lease);
    await one.ask('call', 'close');
    await one.kill();
    const other = await startChild(driver, file);
    const workerId = 'other';
    expect(await other.ask('call', 'acquire', requestFor({ runId: 'held', workerId }))).toMatchObject({
      status: 'held',
    });
    const again = await other.ask('call', 'acquire', requestFor({ runId: 'freed', workerId }));
    expect(again).toMatchObject({ status: 'granted', lease: { fencingToken: 2 } });
  });

  it('SQ1 a file locked for 2 s by another process stops no event loop, and every call succeeds', async () => {
    const file = newFile();
    await using store = await openFile(driver, file);
    const leases = await Promise.all([...Array(10).keys()].map((number) => grant(store, { runId: `run-${number}` })));
    const freed = await grant(store, { runId: 'freed' });
    const { unlocked } = await lockFile(driver, file);
    let isLocked = true;
    void unlocked.then(() => (isLocked = false));
    const stall = watchStalls();
    // What needs no writing is answered at once.
    expect(await store.acquire(requestFor({ runId: 'run-1', workerId: 'other' }))).toMatchObject({ status: 'held' });
    expect(await store.read('run-1')).toMatchObject({ state: 'held' });
    expect(isLocked).toBe(true);
    const answers = await Promise.all([
      store.acquire(requestFor({ runId: 'new' })),
      store.renew(leases, 30),
      store.release(freed),
      unlocked,
    ]);
    const [acquired, renewed, released] = answers;
    expect(acquired.status).toBe('granted');
    expect(renewed.map(({ status }) => status)).toEqual(leases.map(() => 'renewed'));
    expect(released).toBe(true);
    // A thread that waited for the lock would have stood still for the whole of it.
    expect(stall()).toBeLessThan(LOCK_SECONDS / 2);
  });

  it('B8 the clock is read once the lock was obtained: a lease lives its ttl from the grant', async () => {
    const file = newFile();
    await using store = await openFile(driver, file);
    const late = await grant(store, { runId: 'late', ttlSeconds: 0.5 });
    const { unlocked } = await lockFile(driver, file);
    const acquiring = grant(store, { ttlSeconds: 0.5 });
    const renewing = store.renew([late], 0.5);
    const [lease, renewed, unlockedAt] = await Promise.all([acquiring, renewing, unlocked]);
    expect(lease.expiresAt - 0.5).toBeGreaterThan(unlockedAt - 0.002);
    expect(renewed).toEqual([{ status: 'lost', reason: 'expired' }]);
  });
}

/** Rounds in which 8 processes ask at once for a run that has expired. One wins each, and its token is the next one. */
async function raceRounds(driverOf: (number: number) => DriverName, changes: Partial<AcquireRequest>): Promise<void> {
  const file = newFile();
  const children = await Promise.all([...Array(RACERS).keys()].map((number) => startChild(driverOf(number), file)));
  const database = connect(driverOf(0), file);
  for (let round = 1; round <= ROUNDS; round += 1) {
    const at = Date.now() + 10;
    const asks = children.map((child, number) =>
      child.ask<AcquireResult>('acquireAt', at, requestFor({ workerId: `worker-${number}`, ...changes })),
    );
    const results = await Promise.all(asks);
    const winners = results.filter((result) => result.status === 'granted');
    expect(winners.map(({ lease }) => lease.fencingToken)).toEqual([round]);
    const tokens = new Set(results.map((result) => (result.status === 'held' ? result.fencingToken : round)));
    expect([...tokens]).toEqual([round]);
    database.exec(`UPDATE lessor_lease SET expires_at = unixepoch('subsec')`);
  }
  database.close();
}

/** Asks until the run is free, at most for its ttl and a generous while. */
async function takeOver(store: SqliteStore, ttlSeconds: number): Promise<StoredLease> {
  const deadline = performance.now() + ttlSeconds * 1000 + 5000;
  for (;;) {
    const result = await store.acquire(requestFor({ workerId: 'next', ttlSeconds }));
    if (result.status === 'granted') return result.lease;
    expect(performance.now()).toBeLessThan(deadline);
    await sleep(Math.min(result.retryAfterSeconds * 1000 + 1, 50));
  }
}

/** Resolves once another process has the lock. `unlocked` tells when it lets go, in seconds on the machine's clock. */
async function lockFile(driver: DriverName, file: string): Promise<{ readonly unlocked: Promise<number> }> {
  const child = await startChild(driver, file);
  const locked = once(child, 'locked');
  const unlocked = child.ask<number>('lock', LOCK_SECONDS);
  await locked;
  return { unlocked };
}

/** Watches the event loop, and tells its longest stall in seconds. */
function watchStalls(): () => number {
  let last = performance.now();
  let longest = 0;
  const look = (): void => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  };
  const timer = setInterval(look, 2);
  return () => {
    clearInterval(timer);
    look();
    return longest / 1000;
  };
}
