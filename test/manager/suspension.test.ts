import assert from 'node:assert/strict';
import { describe, it } from 'vitest';
import type { HeldLease } from '../../src/manager/held-lease.ts';
import { BELIEVED, bench, TTL } from './bench.ts';
import { hang } from './scripted-store.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** When the signal aborts, on the clock since boot, in seconds from now; null until then. */
function abortOf(lease: HeldLease, clock: VirtualClock): { after: number | null } {
  const start = clock.bootSeconds();
  const seen: { after: number | null } = { after: null };
  lease.signal.addEventListener('abort', () => (seen.after = clock.bootSeconds() - start));
  return seen;
}

/** At the deadline, or one timer after it. */
function assertAt({ after }: { after: number | null }, seconds: number): void {
  assert.ok(after !== null && after >= seconds - 1e-6 && after < seconds + 0.002, `at ${after}, not at ${seconds}`);
}

describe('a lease of a machine that was suspended', () => {
  it('C2 the signal aborts at the deadline on the clock since boot, after a suspension that left some time', async () => {
    const { clock, leases, news } = bench({ autoRenew: false });
    const lease = await leases.acquire('run-1');
    const abort = abortOf(lease, clock);
    await clock.advance(2);
    clock.suspend(20);
    await clock.advance(BELIEVED - 22 - 0.01);
    assert.equal(abort.after, null, 'held until then');
    await clock.advance(TTL);
    assertAt(abort, BELIEVED);
    assert.deepEqual(news, ['granted', 'lost']);
    assert.equal(clock.armed, 0);
  });

  it('C2 after a suspension the signal aborts at the deadline, while a renewal hangs', async () => {
    const { clock, store, leases } = bench();
    store.always('renew', hang);
    const lease = await leases.acquire('run-1');
    const abort = abortOf(lease, clock);
    await clock.advance(10.5);
    clock.suspend(10);
    await clock.advance(TTL);
    assertAt(abort, BELIEVED);
    assert.equal(clock.armed, 0);
  });

  it('B26 a lease that was resumed in time is renewed within a second, though its timer would come too late', async () => {
    const { clock, store, leases, news } = bench();
    const lease = await leases.acquire('run-1');
    await clock.advance(2);
    clock.suspend(20);
    await clock.advance(1);
    assert.deepEqual(news, ['granted', 'renewed']);
    assert.equal(store.count('renew'), 1);
    await clock.advance(BELIEVED);
    assert.ok(lease.remainingSeconds() > 0);
    assert.equal(store.count('renew'), 3, 'and each third of its ttl from then on');
    await lease.release();
    assert.equal(clock.armed, 0);
  });

  it('C2 each lease ends at its own deadline after two suspensions, one of them too short to leap out', async () => {
    const { clock, leases } = bench({ autoRenew: false });
    const first = abortOf(await leases.acquire('run-1'), clock);
    await clock.advance(3);
    const second = abortOf(await leases.acquire('run-2'), clock);
    clock.suspend(0.2);
    await clock.advance(2);
    clock.suspend(10);
    await clock.advance(2);
    const third = abortOf(await leases.acquire('run-3'), clock);
    await clock.advance(2 * TTL);
    for (const abort of [first, second, third]) assertAt(abort, BELIEVED);
    assert.equal(clock.armed, 0);
  });

  it('C2 a lease that is renewed after a suspension ends at its new deadline', async () => {
    const { clock, leases } = bench({ autoRenew: false });
    const lease = await leases.acquire('run-1');
    await clock.advance(2);
    clock.suspend(20);
    await clock.advance(2);
    const abort = abortOf(lease, clock);
    const renewing = lease.renew();
    await clock.advance(0);
    await renewing;
    await clock.advance(BELIEVED - 0.01);
    lease.assertHeld();
    await clock.advance(TTL);
    assertAt(abort, BELIEVED);
  });

  it('C2 a lease that was resumed with less left than a second is aborted within a second of that', async () => {
    const { clock, leases } = bench({ autoRenew: false });
    const lease = await leases.acquire('run-1');
    const abort = abortOf(lease, clock);
    await clock.advance(2.05);
    clock.suspend(27.3);
    await clock.advance(1);
    assert.ok(abort.after !== null && abort.after <= 29.35 + 1);
    assert.equal(clock.armed, 0);
  });

  it('C10 nothing stays armed when a lease is released after a suspension, or while its work goes on after the loss', async () => {
    const { clock, leases } = bench({ autoRenew: false });
    const lease = await leases.acquire('run-1');
    await clock.advance(2);
    clock.suspend(20);
    await clock.advance(2);
    await lease.release();
    assert.equal(clock.armed, 0);
    void leases.hold('run-2', {}, () => new Promise(() => undefined)).catch(() => undefined);
    await clock.advance(2);
    clock.suspend(20);
    await clock.advance(TTL);
    assert.equal(clock.armed, 0);
  });

  it('C15 one timer watches over all leases, and it comes once a second without a suspension', async () => {
    const { clock, leases } = bench({ autoRenew: false });
    const held = await Promise.all(Array.from({ length: 100 }, (_, run) => leases.acquire(`run-${run}`)));
    assert.equal(clock.armed, 2 * held.length + 1, 'each lease has its deadline and its renewal');
    const firings: number[] = [];
    const { after } = clock;
    clock.after = (seconds, callback) =>
      after.call(clock, seconds, () => {
        firings.push(clock.monotonicSeconds());
        callback();
      });
    await clock.advance(5);
    assert.ok(firings.length <= 5, String(firings));
    await leases.close();
    assert.equal(clock.armed, 0);
  });
});
