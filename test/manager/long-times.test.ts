import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it } from 'vitest';
import { MAX_TIMER_SECONDS } from '../../src/clock.ts';
import { giveBack } from '../../src/manager/give-back.ts';
import { LeaseManager } from '../../src/manager/lease-manager.ts';
import { request } from '../../src/manager/request.ts';
import { keeperTimes } from '../../src/manager/settings.ts';
import { MemoryStore } from '../../src/stores/memory.ts';
import { bench, watched } from './bench.ts';
import { unavailable } from './scripted-store.ts';

const YEAR = { ttlSeconds: 365 * 86_400, allowLongTtl: true };

describe('times that are longer than a timer of Node', () => {
  it('C15 with a ttl of a year every request goes out with timers that Node bears', async () => {
    const { clock, leases } = bench(YEAR);
    const lease = await leases.acquire('run-1');
    const renewing = lease.renew();
    await clock.advance(0);
    await renewing;
    await leases.guard(lease);
    await lease.release();
    assert.ok(clock.longestSeconds <= MAX_TIMER_SECONDS, String(clock.longestSeconds));
    assert.equal(clock.armed, 0);
  });

  it('C15 with a ttl of a year a store that takes its time is waited for, on the real clock', async () => {
    const store = new MemoryStore();
    const { acquire } = store;
    store.acquire = async (...call) => {
      await sleep(20);
      return acquire.apply(store, call);
    };
    const leases = new LeaseManager(store, YEAR);
    const lease = await leases.acquire('run-1');
    assert.equal(await lease.release(), true);
    await leases.close();
  });

  it('C15 a request is given up when its long time is over, and not before', async () => {
    const { clock } = bench();
    const timeoutSeconds = 5_256_000;
    const asking = watched(request(() => new Promise(() => undefined), { clock, timeoutSeconds }));
    await clock.advance(timeoutSeconds - 1);
    assert.equal(asking.settled, false);
    await clock.advance(2);
    assert.equal((asking.error as Error).message, 'No answer within 5256000 s');
    assert.ok(clock.longestSeconds <= MAX_TIMER_SECONDS);
    assert.equal(clock.armed, 0);
  });

  it('C15 the pauses of a release that is tried for months are timers that Node bears', async () => {
    const { clock, store } = bench();
    store.always('release', unavailable);
    const times = keeperTimes(YEAR);
    const lease = { runId: 'run-1', workerId: 'worker-a', acquisitionId: 'a' };
    const giving = watched(giveBack(store, clock, lease, times));
    await clock.advance(times.releaseTimeoutSeconds);
    assert.equal(giving.value!.freed, false);
    assert.ok(clock.longestSeconds <= MAX_TIMER_SECONDS, String(clock.longestSeconds));
    assert.equal(clock.armed, 0);
  });
});
