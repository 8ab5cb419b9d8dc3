import assert from 'node:assert/strict';
import { describe, it, vi } from 'vitest';
import { LeaseLostError } from '../../src/errors.ts';
import type { LeaseRef } from '../../src/lease.ts';
import type { HeldLease } from '../../src/manager/held-lease.ts';
import { BELIEVED, bench, gate, TTL, watched } from './bench.ts';
import { answering, answeredLate, hang, heldUp, loseReply, unavailable } from './scripted-store.ts';
import { settle } from './virtual-clock.ts';

describe('renewing', () => {
  it('RN1. A release during a renewal succeeds and is no loss', async () => {
    const { clock, store, leases, news, rival } = bench();
    const done = gate();
    const slow = gate();
    store.next('renew', heldUp(slow.opened));
    let signal: AbortSignal | undefined;
    const holding = watched(
      leases.hold('run-1', {}, async (lease) => {
        signal = lease.signal;
        await done.opened;
        return 'result';
      }),
    );
    await clock.advance(10.001);
    assert.equal(store.count('renew'), 1);
    done.open();
    await settle();
    assert.equal(store.count('release'), 0, 'the release waits for the renewal on its way');
    slow.open();
    await settle();
    assert.equal(holding.value, 'result');
    assert.equal(signal!.aborted, false);
    assert.deepEqual(news, ['granted', 'released']);
    assert.ok(await rival());
    assert.equal(clock.armed, 0);
  });

  it('RN1. A renewal that never answers does not keep the release, nor turn it into a loss', async () => {
    const { clock, store, leases, news } = bench();
    store.always('renew', hang);
    const lease = await leases.acquire('run-1');
    await clock.advance(10.001);
    const releasing = watched(lease.release());
    await clock.advance(5.1);
    assert.equal(releasing.value, true);
    assert.deepEqual(news, ['granted', 'released']);
  });

  it('RN6. Every granted lease ends exactly once, and without a grant nothing ends', async () => {
    const { clock, store, leases, news, rival } = bench();
    const lease = await leases.acquire('run-1');
    let aborts = 0;
    lease.signal.addEventListener('abort', () => (aborts += 1));
    store.next('renew', (call) => call(), answering([{ status: 'lost', reason: 'superseded' }]));
    await clock.advance(4 * TTL);
    assert.deepEqual(news, ['granted', 'renewed', 'lost']);
    assert.equal(aborts, 1);
    assert.equal((lease.signal.reason as LeaseLostError).reason, 'superseded');
    assert.equal(await lease.release(), false);
    news.length = 0;
    await rival('run-2');
    await assert.rejects(leases.acquire('run-2'), { code: 'LEASE_NOT_AVAILABLE' });
    store.next('acquire', unavailable);
    await assert.rejects(leases.acquire('run-3'), { code: 'STORE_UNAVAILABLE' });
    assert.deepEqual(news, []);
    assert.equal(clock.armed, 0);
  });

  it('RN7. A renewal after another worker came and went is refused, and that is final', async () => {
    const { clock, store, leases, rival } = bench({ autoRenew: false, drift: 0, granularitySeconds: 0 });
    const lease = await leases.acquire('run-1');
    // The store's clock ran ahead: it expired there before the worker's own deadline.
    await store.inner.release(lease);
    const other = await rival();
    await store.inner.release(other!);
    await assert.rejects(renewed(lease, clock), LeaseLostError);
    await assert.rejects(lease.renew(), LeaseLostError);
    assert.equal(store.count('renew'), 1, 'the first refusal is final');
    assert.equal(clock.armed, 0);
  });

  it('RN9. The older handle of the same worker can neither renew nor release', async () => {
    const one = bench();
    const older = await one.leases.acquire('run-1');
    const newer = await one.rival('run-1', 'worker-a');
    assert.equal(newer, null, 'refused, where it is not to be extended');
    const answer = await one.store.inner.acquire({
      runId: 'run-1',
      workerId: 'worker-a',
      acquisitionId: 'of another process',
      ttlSeconds: TTL,
    });
    assert.ok(answer.status === 'granted' && answer.lease.fencingToken === older.fencingToken);
    await assert.rejects(renewed(older, one.clock), { code: 'LEASE_LOST', reason: 'superseded' });
    assert.equal(await one.store.inner.release(older), false);
    assert.equal((await one.store.inner.read('run-1'))!.state, 'held');
  });

  it('RN10. A held lease is one handle whose state moves', async () => {
    const { clock, store, leases } = bench();
    const lease = await leases.acquire('run-1');
    await clock.advance(9);
    const before = lease.remainingSeconds();
    await renewed(lease, clock);
    assert.ok(lease.remainingSeconds() > before);
    assert.ok(Math.abs(lease.remainingSeconds() - BELIEVED) < 0.01);
    assert.equal(await lease.release(), true);
    assert.equal(store.count('release'), 1);
  });

  it('RN11. A short ttl does not turn renewing into a hot loop', async () => {
    for (const ttlSeconds of [1, 1.5, 3]) {
      const { clock, store, leases } = bench({ ttlSeconds });
      const lease = await leases.acquire('run-1');
      await clock.advance(3 * ttlSeconds);
      assert.ok(store.count('renew') <= 9, `${store.count('renew')} renewals in three ttls`);
      assert.ok(store.count('renew') >= 8);
      lease.assertHeld();
      await leases.close();
    }
  });

  it('RN11. Renewals that fail at once are retried with a growing pause', async () => {
    const { clock, store, leases } = bench({ ttlSeconds: 1 });
    store.always('renew', unavailable);
    await leases.acquire('run-1');
    await clock.advance(1);
    const times = store.times('renew');
    assert.ok(times.length >= 3 && times.length < 20, `${times.length} attempts`);
    assert.ok(times.slice(1).every((time, index) => time - times[index]! >= 0.008));
  });

  it('RN12. A hung callback keeps its lease as long as it is renewed, and no longer', async () => {
    const { clock, leases, rival } = bench();
    let lease: HeldLease | undefined;
    void leases.hold('run-1', {}, (held) => {
      lease = held;
      return new Promise(() => undefined);
    });
    await clock.advance(10 * TTL);
    lease!.assertHeld();
    const byHand = leases.hold('run-2', { autoRenew: false }, (held) => {
      lease = held;
      return new Promise(() => undefined);
    });
    byHand.catch(() => undefined);
    await clock.advance(20);
    await renewed(lease!, clock);
    await clock.advance(BELIEVED - 1);
    lease!.assertHeld();
    await clock.advance(2);
    assert.throws(() => lease!.assertHeld(), LeaseLostError);
    assert.ok(await rival('run-2'), 'another worker takes over');
  });

  it('RN16. Renewing by hand has the same states and errors', async () => {
    const { clock, store, leases } = bench({ autoRenew: false });
    const lease = await leases.acquire('run-1');
    clock.block(20);
    await renewed(lease, clock);
    assert.ok(lease.remainingSeconds() > 29);
    store.next('renew', unavailable);
    const failing = watched(lease.renew());
    await clock.advance(0.001);
    assert.equal((failing.error as { code: string }).code, 'STORE_UNAVAILABLE');
    lease.assertHeld();
    assert.equal(store.count('renew'), 2, 'nothing is retried in the background');
    clock.block(TTL);
    await assert.rejects(lease.renew(), { code: 'LEASE_LOST', reason: 'expired' });
    assert.equal(store.count('renew'), 2, 'past the deadline nothing is sent');
  });

  it('RN16. Two renewals at once by hand share one request', async () => {
    const { clock, store, leases } = bench({ autoRenew: false });
    const lease = await leases.acquire('run-1');
    const both = Promise.all([lease.renew(), lease.renew()]);
    await clock.advance(0.001);
    await both;
    assert.equal(store.count('renew'), 1);
    await leases.close();
  });

  it('C8 renewals that are due together go out together', async () => {
    const { clock, store, leases } = bench();
    for (let run = 0; run < 100; run += 1) {
      await leases.acquire(`run-${run}`);
      await clock.advance(0.005);
    }
    await clock.advance(3 * TTL);
    const sizes = store.calls
      .filter(({ method }) => method === 'renew')
      .map(({ argument }) => (argument as LeaseRef[]).length);
    assert.ok(sizes.length <= 20, `${sizes.length} requests for 100 leases in three ttls`);
    assert.ok(sizes.reduce((sum, size) => sum + size) >= 800);
    await leases.close();
  });

  it('RN17. One slow run does not cost the others their leases (C8)', async () => {
    const { clock, store, leases } = bench();
    // Without jitter all of them retry in one turn, the worst case.
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const held: HeldLease[] = [];
    for (let run = 0; run < 100; run += 1) held.push(await leases.acquire(`run-${run}`));
    const blocked = 'run-42';
    store.always('renew', (call, signal) => {
      const { argument } = store.calls.at(-1)!;
      const waits = (argument as LeaseRef[]).some(({ runId }) => runId === blocked);
      return waits ? loseNothing(signal) : call();
    });
    await clock.advance(2 * TTL);
    const lost = held.filter(({ loss }) => loss !== null).map(({ runId }) => runId);
    vi.restoreAllMocks();
    assert.deepEqual(lost, [blocked]);
    await leases.close();
  });

  it('C6 an unavailable store never moves the deadline, and a success after failures counts from its own sending', async () => {
    const { clock, store, leases } = bench();
    const lease = await leases.acquire('run-1');
    store.always('renew', unavailable);
    await clock.advance(25);
    store.always('renew');
    await clock.advance(3.1);
    lease.assertHeld();
    const sentAt = store.times('renew').at(-1)!;
    assert.ok(Math.abs(clock.monotonicSeconds() + lease.remainingSeconds() - sentAt - BELIEVED) < 1e-6);
    await leases.close();
  });

  it('B11 a renewal whose reply is lost keeps the old deadline, and the next one succeeds', async () => {
    const { clock, store, leases } = bench();
    const lease = await leases.acquire('run-1');
    store.next('renew', loseReply);
    await clock.advance(16);
    lease.assertHeld();
    assert.equal(store.count('renew'), 2);
    assert.ok(lease.remainingSeconds() > 28);
    await leases.close();
  });

  it('RN2. Neither a failing renewal, a loss nor a throwing listener throws from the background', async () => {
    const { clock, store, leases, news } = bench();
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on('warning', onWarning);
    const lease = await leases.acquire('run-1');
    leases.on('uncertain', () => {
      throw new Error('a listener of uncertain');
    });
    lease.signal.addEventListener('abort', () => {
      throw new Error('a listener of abort');
    });
    lease.signal.onabort = () => {
      throw new Error('the onabort handler');
    };
    let heard = 0;
    lease.signal.addEventListener('abort', () => (heard += 1));
    store.next('renew', () => Promise.reject(new Error('ECONNRESET')));
    await clock.advance(10.001);
    assert.equal(news.at(-1), 'uncertain');
    await store.inner.revoke('run-1', { by: 'operator', reason: 'stuck' });
    await clock.advance(12);
    await new Promise((resolve) => setTimeout(resolve, 5));
    process.off('warning', onWarning);
    assert.equal((lease.signal.reason as LeaseLostError).reason, 'revoked');
    assert.equal(heard, 1);
    assert.equal(warnings.length, 3, warnings.map(({ message }) => message).join('\n'));
  });

  it('C4 a slow reply that comes before the deadline renews', async () => {
    const { clock, store, leases, news } = bench({ requestTimeoutSeconds: 8 });
    const lease = await leases.acquire('run-1');
    const slow = gate();
    store.next('renew', answeredLate(slow.opened));
    await clock.advance(17);
    slow.open();
    await settle();
    assert.deepEqual(news, ['granted', 'renewed']);
    lease.assertHeld();
    await leases.close();
  });
});

/** A renewal by hand needs a turn, in which others may join it. */
async function renewed(lease: HeldLease, clock: { advance(seconds: number): Promise<void> }): Promise<void> {
  const renewing = lease.renew();
  renewing.catch(() => undefined);
  await clock.advance(0.001);
  await renewing;
}

/** Waits until it is given up, and applies nothing. */
function loseNothing(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error)));
}
