import assert from 'node:assert/strict';
import { describe, it } from 'vitest';
import { MAX_TIMER_SECONDS } from '../../src/clock.ts';
import { LeaseLostError } from '../../src/errors.ts';
import { BELIEVED, bench, gate, TTL, watched } from './bench.ts';
import { answeredLate, hang, loseReply, unavailable, unknown } from './scripted-store.ts';
import { settle } from './virtual-clock.ts';

describe('the deadline of a lease', () => {
  it('C1 counts from the sending of the acquire, not from its reply', async () => {
    const { clock, store, leases } = bench();
    const slow = gate();
    store.next('acquire', answeredLate(slow.opened));
    const acquiring = leases.acquire('run-1');
    await clock.advance(4);
    slow.open();
    const lease = await acquiring;
    assert.ok(Math.abs(lease.remainingSeconds() - (BELIEVED - 4)) < 1e-6);
    await leases.close();
  });

  it('C1 a renewal moves the deadline to its own sending plus the ttl less the margin', async () => {
    const { clock, store, leases, news } = bench();
    const lease = await leases.acquire('run-1');
    const slow = gate();
    store.next('renew', answeredLate(slow.opened));
    await clock.advance(10.001);
    const [sentAt] = store.times('renew');
    await clock.advance(3);
    slow.open();
    await settle();
    assert.deepEqual(news, ['granted', 'renewed']);
    assert.ok(Math.abs(lease.remainingSeconds() - (sentAt! + BELIEVED - clock.monotonicSeconds())) < 1e-6);
    await leases.close();
  });

  const failures = [
    ['is unavailable', unavailable],
    ['answers with an unknown outcome', unknown],
    ['hangs', hang],
    ['loses every reply', loseReply],
  ] as const;
  for (const [how, fault] of failures) {
    it(`RN3. A lease is lost at its deadline when every renewal ${how} (C3, C6)`, async () => {
      const { clock, store, leases, news } = bench();
      store.always('renew', fault);
      const sentAt = clock.monotonicSeconds();
      const lease = await leases.acquire('run-1');
      let abortedAt = 0;
      lease.signal.addEventListener('abort', () => (abortedAt = clock.monotonicSeconds()));
      await clock.advance(BELIEVED - 0.01);
      lease.assertHeld();
      assert.equal(lease.signal.aborted, false);
      assert.ok(news.filter((one) => one === 'uncertain').length >= 2, 'at least two attempts failed');
      await clock.advance(0.02);
      assert.ok(Math.abs(abortedAt - sentAt - BELIEVED) < 1e-5, `at the deadline, not ${abortedAt - sentAt}`);
      assert.equal(news.at(-1), 'lost');
      const { reason } = lease.signal as { reason: LeaseLostError };
      assert.equal(reason.reason, 'expired');
      assert.ok(reason.cause instanceof Error, 'the last failure is the cause');
      await leases.close();
      assert.equal(clock.armed, 0);
    });
  }

  it('RN4. One failed or unanswered renewal is no loss', async () => {
    for (const fault of [unavailable, unknown, loseReply]) {
      const { clock, store, leases, news } = bench();
      const lease = await leases.acquire('run-1');
      const grantedUntil = clock.monotonicSeconds() + lease.remainingSeconds();
      store.next('renew', fault);
      await clock.advance(10.001);
      if (fault === loseReply) await clock.advance(5);
      assert.equal(news.at(-1), 'uncertain');
      const left = lease.remainingSeconds();
      assert.ok(Math.abs(clock.monotonicSeconds() + left - grantedUntil) < 1e-6, 'the old deadline stays');
      await clock.advance(2);
      assert.equal(news.at(-1), 'renewed');
      const secondSentAt = store.times('renew')[1]!;
      assert.ok(Math.abs(clock.monotonicSeconds() + lease.remainingSeconds() - secondSentAt - BELIEVED) < 1e-6);
      assert.equal(lease.signal.aborted, false);
      await leases.close();
    }
  });

  it('C4 a renewal that is answered after the deadline does not revive the lease, and is given back', async () => {
    const { clock, store, leases, rival } = bench();
    const slow = gate();
    store.always('renew', answeredLate(slow.opened));
    const lease = await leases.acquire('run-1');
    const { signal } = lease;
    await clock.advance(TTL);
    assert.equal(signal.aborted, true);
    assert.equal(await rival(), null, 'the renewal took effect at the store');
    slow.open();
    await settle();
    assert.equal(lease.remainingSeconds(), 0);
    assert.throws(() => lease.assertHeld(), LeaseLostError);
    assert.ok(store.count('release') >= 1);
    assert.ok(await rival(), 'the run is free');
  });

  it('C4 an answer that is read after the deadline is a loss, even when it says yes and no timer has fired yet', async () => {
    const { clock, store, leases, news, rival } = bench();
    const slow = gate();
    store.next('renew', answeredLate(slow.opened));
    const lease = await leases.acquire('run-1');
    await clock.advance(10.001);
    clock.block(BELIEVED - 10);
    slow.open();
    await settle();
    assert.deepEqual(news, ['granted', 'lost']);
    assert.throws(() => lease.assertHeld(), LeaseLostError);
    assert.ok(await rival(), 'given back');
    assert.equal(clock.armed, 0);
  });

  it('C4 a late yes to an attempt that was given up does not release the lease that a later attempt renewed', async () => {
    const { clock, store, leases, rival } = bench();
    const slow = gate();
    store.next('renew', answeredLate(slow.opened));
    const lease = await leases.acquire('run-1');
    await clock.advance(35);
    slow.open();
    await settle();
    lease.assertHeld();
    assert.equal(store.count('release'), 0);
    assert.equal(await rival(), null);
    await leases.close();
  });

  it('C5 a grant that arrives after its deadline is none: it is given back and the work does not run', async () => {
    const { clock, store, leases, rival } = bench();
    const slow = gate();
    store.next('acquire', answeredLate(slow.opened));
    let ran = false;
    const holding = watched(leases.hold('run-1', {}, () => (ran = true)));
    await settle();
    // A renewal by nobody else: the process was stopped between the sending and the reading of the reply.
    clock.block(BELIEVED + 0.1);
    slow.open();
    await settle();
    await clock.advance(1);
    assert.equal(holding.settled, true);
    assert.equal((holding.error as { code: string }).code, 'OUTCOME_UNKNOWN');
    assert.equal(ran, false);
    assert.equal(store.count('release'), 1);
    assert.ok(await rival(), 'AQ2 (b): what was granted was released');
  });

  it('RN13. assertHeld() is right directly after the event loop was blocked', async () => {
    const { clock, store, leases } = bench();
    const holding = leases.hold('run-1', {}, async (lease) => {
      clock.block(2 * TTL);
      assert.throws(() => lease.assertHeld(), LeaseLostError);
      assert.equal(lease.remainingSeconds(), 0);
      assert.equal(lease.signal.aborted, true);
      await clock.turn();
      assert.throws(() => lease.assertHeld(), LeaseLostError);
      return 42;
    });
    await assert.rejects(holding, { name: 'LeaseLostError', reason: 'expired', result: 42 });
    assert.equal(store.count('renew'), 0);
  });

  it('RN13. With blocks of less than the ttl one after the other, the shrinking rest is told with each renewal', async () => {
    const { clock, leases } = bench();
    const left: number[] = [];
    leases.on('renewed', ({ leftSeconds }) => left.push(leftSeconds));
    const lease = await leases.acquire('run-1');
    for (let burst = 0; burst < 3; burst += 1) {
      clock.block(0.9 * TTL);
      await clock.turn();
      await clock.advance(0.01);
      lease.assertHeld();
    }
    assert.equal(left.length, 3);
    assert.ok(
      left.every((seconds) => seconds > 0 && seconds < 0.1 * TTL),
      String(left),
    );
    await leases.close();
  });

  it('RN14. After a stop beyond the deadline every timer looks at it first: no renewal is sent', async () => {
    const { clock, store, leases, news } = bench();
    const lease = await leases.acquire('run-1');
    clock.block(2 * TTL);
    await clock.turn();
    await clock.advance(2 * TTL);
    assert.equal(store.count('renew'), 0);
    assert.deepEqual(news, ['granted', 'lost']);
    assert.throws(() => lease.assertHeld(), LeaseLostError);
    assert.equal(clock.armed, 0);
  });

  it('RN15. A machine that slept has lost its leases, though the monotonic clock stood still', async () => {
    const { clock, leases, store } = bench();
    const lease = await leases.acquire('run-1');
    const other = await leases.acquire('run-2');
    const { signal } = other;
    clock.suspend(2 * TTL);
    assert.equal(lease.remainingSeconds(), 0);
    assert.throws(() => lease.assertHeld(), LeaseLostError);
    await clock.advance(1.1);
    assert.equal(signal.aborted, true, 'noticed without being asked');
    assert.equal(store.count('renew'), 0);
  });

  it('RN15. A machine that slept while the acquire was on its way is found out as well', async () => {
    const { clock, store, leases } = bench();
    const slow = gate();
    store.next('acquire', answeredLate(slow.opened));
    const acquiring = leases.acquire('run-1');
    clock.suspend(BELIEVED - 0.5);
    slow.open();
    const lease = await acquiring;
    const { signal } = lease;
    await clock.advance(1.1);
    assert.equal(signal.aborted, true);
    assert.equal(lease.remainingSeconds(), 0);
  });

  for (const [when, fault] of [
    ['before it took effect', hang],
    ['after it took effect', loseReply],
  ] as const) {
    it(`RN5. The loss is signalled before another worker is granted the run, the network cut ${when} (C16)`, async () => {
      const { clock, store, leases, rival } = bench();
      store.next('renew', fault);
      store.always('renew', hang);
      const lease = await leases.acquire('run-1');
      let lostAt = 0;
      lease.signal.addEventListener('abort', () => (lostAt = clock.monotonicSeconds()));
      let granted = await rival();
      for (; granted === null; granted = await rival()) await clock.advance(0.05);
      assert.ok(lostAt > 0 && lostAt < clock.monotonicSeconds());
      assert.ok(granted.fencingToken > lease.fencingToken);
    });
  }

  it('RN15. A jump of the monotonic clock alone loses the lease as well', async () => {
    const { clock, leases } = bench();
    const lease = await leases.acquire('run-1');
    clock.leap(2 * TTL);
    assert.throws(() => lease.assertHeld(), LeaseLostError);
    assert.equal(lease.signal.aborted, true);
  });

  it('C2 remainingSeconds goes by the clock that says less', async () => {
    const { clock, leases } = bench();
    const lease = await leases.acquire('run-1');
    clock.suspend(9);
    assert.ok(Math.abs(lease.remainingSeconds() - (BELIEVED - 9)) < 1e-6);
    clock.leap(20);
    assert.ok(Math.abs(lease.remainingSeconds() - (BELIEVED - 20)) < 1e-6);
    await leases.close();
  });

  it('C7 one renewal is on its way at a time, and ends before the lease does', async () => {
    const { clock, store, leases } = bench();
    let open = 0;
    let most = 0;
    const ends: number[] = [];
    store.always('renew', (_, signal) => {
      most = Math.max(most, (open += 1));
      return new Promise((__, reject) =>
        signal!.addEventListener('abort', () => {
          open -= 1;
          ends.push(clock.monotonicSeconds());
          reject(signal!.reason as Error);
        }),
      );
    });
    const start = clock.monotonicSeconds();
    const lease = await leases.acquire('run-1');
    await clock.advance(TTL);
    assert.equal(most, 1);
    assert.ok(ends.length >= 3);
    assert.ok(ends.every((end) => end < start + BELIEVED));
    assert.throws(() => lease.assertHeld(), LeaseLostError);
  });

  it('C15 no timer is longer than Node bears, and a lease of months still ends at its deadline', async () => {
    const ttlSeconds = 40 * 86_400;
    const { clock, leases } = bench({ ttlSeconds, allowLongTtl: true, autoRenew: false });
    const lease = await leases.acquire('run-1');
    assert.ok(clock.longestSeconds <= MAX_TIMER_SECONDS);
    // Without the watch over suspensions, whose looks are too many to play through.
    const { signal } = lease;
    clock.block(0.9 * ttlSeconds);
    await clock.turn();
    await clock.turn();
    assert.equal(signal.aborted, false);
    clock.block(0.1 * ttlSeconds);
    await clock.turn();
    assert.equal(signal.aborted, true);
    assert.equal(clock.armed, 0);
    assert.ok(clock.longestSeconds <= MAX_TIMER_SECONDS);
  });
});
