import assert from 'node:assert/strict';
import { describe, it } from 'vitest';
import { LeaseNotAvailableError } from '../../src/errors.ts';
import { BELIEVED, bench, gate, TTL, watched } from './bench.ts';
import { answeredLate, hang, heldUp, loseReply, unavailable, unknown } from './scripted-store.ts';
import { settle } from './virtual-clock.ts';

describe('acquiring', () => {
  it('AQ1. An acquire whose reply got lost is repeated with its acquisition id, and gets that same lease', async () => {
    const { clock, store, leases } = bench();
    store.next('acquire', loseReply);
    const acquiring = watched(leases.acquire('run-1', { waitSeconds: 20 }));
    await clock.advance(5.5);
    await clock.advance(1);
    const lease = acquiring.value!;
    const record = (await store.inner.read('run-1'))!;
    assert.equal(lease.fencingToken, record.fencingToken);
    assert.equal(record.fence, 1, 'one token was used');
    const ids = store.calls.map(({ argument }) => (argument as { acquisitionId: string }).acquisitionId);
    assert.equal(ids.length, 2);
    assert.equal(ids[0], ids[1]);
    const repeatedAt = store.times('acquire')[1]!;
    assert.ok(Math.abs(clock.monotonicSeconds() + lease.remainingSeconds() - repeatedAt - BELIEVED) < 1e-6);
    await leases.close();
  });

  it('AQ1. Giving up an acquire without an answer releases what it may have got: the run is free at once', async () => {
    const { clock, store, leases, rival } = bench();
    store.next('acquire', loseReply);
    const acquiring = watched(leases.acquire('run-1'));
    await clock.advance(5.1);
    assert.equal((acquiring.error as { code: string }).code, 'OUTCOME_UNKNOWN');
    const released = store.calls.at(-1)!;
    assert.equal(released.method, 'release');
    assert.equal((released.argument as { fencingToken?: number }).fencingToken, undefined);
    assert.ok(await rival(), 'free without waiting for the ttl');
    assert.equal(clock.armed, 0);
  });

  it('C12 a grant that is still on its way when the caller gives up is released when it lands', async () => {
    const { clock, store, leases, rival } = bench();
    const slow = gate();
    store.next('acquire', heldUp(slow.opened));
    const abort = new AbortController();
    const acquiring = watched(leases.acquire('run-1', { signal: abort.signal }));
    await settle();
    const reason = new Error('enough');
    abort.abort(reason);
    await Promise.resolve();
    await settle();
    assert.equal(acquiring.error, reason);
    slow.open();
    await settle();
    assert.ok(await rival(), 'not left behind');
    assert.equal(clock.armed, 0);
  });

  it('C13 a wake-up is no grant: the waiter asks again, and goes on waiting when another was faster', async () => {
    const { clock, store, leases, rival } = bench({}, { pushes: true });
    const first = await rival();
    const acquiring = watched(leases.acquire('run-1', { waitSeconds: 100 }));
    await settle();
    await clock.advance(0.01);
    const asked = store.count('acquire');
    await store.inner.release(first!);
    const second = await rival();
    await settle();
    assert.ok(store.count('acquire') > asked, 'woken');
    assert.equal(acquiring.settled, false);
    await store.inner.release(second!);
    await settle();
    assert.ok(acquiring.value, 'woken again, without a poll');
    await leases.close();
    assert.equal(clock.armed, 0);
  });

  it('C13 losing every wake-up costs one poll at most', async () => {
    const { clock, store, leases, rival } = bench();
    const other = await rival();
    const acquiring = watched(leases.acquire('run-1', { waitSeconds: 100 }));
    await clock.advance(7);
    await store.inner.release(other!);
    await clock.advance(1);
    assert.ok(acquiring.value);
    const pauses = store.times('acquire').map((time, index, times) => time - (times[index - 1] ?? time));
    assert.ok(pauses.slice(1).every((pause) => pause >= 0.02 && pause <= 1.0001));
    await leases.close();
  });

  it('C13 a waiter gets an abandoned run right after its expiry', async () => {
    const { clock, leases, rival } = bench();
    await rival();
    const start = clock.monotonicSeconds();
    const acquiring = watched(leases.acquire('run-1', { waitSeconds: Infinity }));
    let took = 0;
    leases.on('granted', () => (took = clock.monotonicSeconds() - start));
    await clock.advance(TTL + 1);
    assert.equal(acquiring.value!.fencingToken, 2);
    assert.ok(took >= TTL && took <= TTL + 0.2, String(took));
    await leases.close();
  });

  it('AQ6. Held, unavailable and unknown are told apart', async () => {
    const { clock, store, leases, rival } = bench();
    await rival('held');
    assert.equal(await leases.tryAcquire('held'), null);
    await assert.rejects(leases.acquire('held'), { code: 'LEASE_NOT_AVAILABLE' });
    for (const method of ['acquire', 'read'] as const) store.always(method, unavailable);
    await assert.rejects(leases.tryAcquire('run-1'), { code: 'STORE_UNAVAILABLE' });
    await assert.rejects(leases.acquire('run-1'), { code: 'STORE_UNAVAILABLE' });
    await assert.rejects(
      leases.hold('run-1', {}, () => 1),
      { code: 'STORE_UNAVAILABLE' },
    );
    const lease = { runId: 'held', workerId: 'worker-b', fencingToken: 1 };
    await assert.rejects(leases.guard(lease), { code: 'STORE_UNAVAILABLE' });
    store.always('read', unknown);
    await assert.rejects(leases.guard(lease), { code: 'STORE_UNAVAILABLE' });
    store.always('acquire', unknown);
    await assert.rejects(leases.tryAcquire('run-1'), { code: 'OUTCOME_UNKNOWN' });
    const cause = new Error('of the client');
    store.always('acquire', () => Promise.reject(cause));
    await assert.rejects(leases.acquire('run-1'), { code: 'OUTCOME_UNKNOWN', cause });
    store.always('read', hang);
    const hanging = watched(leases.guard(lease));
    await clock.advance(5.1);
    assert.equal((hanging.error as { code: string }).code, 'STORE_UNAVAILABLE');
    assert.equal(clock.armed, 0);
  });

  it('AQ7. A waiting acquire can be cancelled, with the own reason of the caller', async () => {
    const { clock, store, leases, rival } = bench();
    await rival();
    const abort = new AbortController();
    const acquiring = watched(leases.acquire('run-1', { waitSeconds: 100, signal: abort.signal }));
    await clock.advance(0.1);
    const reason = new Error('not needed any more');
    abort.abort(reason);
    await settle();
    assert.equal(acquiring.error, reason);
    assert.equal(clock.armed, 0);
    const asked = store.calls.length;
    await assert.rejects(leases.acquire('run-2', { signal: abort.signal }), reason);
    assert.equal(store.calls.length, asked, 'no I/O when it had aborted before');
    assert.equal(store.count('release'), 0, 'nothing could have been granted');
  });

  it('AQ8. Waiting long keeps nothing, and the error has the count and the last cause', async () => {
    const { clock, store, leases, rival } = bench({ pollSeconds: 0.02 });
    const other = await rival();
    const acquiring = watched(leases.acquire('run-1', { waitSeconds: 20 }));
    await clock.advance(20.1);
    const refused = acquiring.error as LeaseNotAvailableError;
    assert.equal(refused.code, 'LEASE_NOT_AVAILABLE');
    assert.equal(refused.attempts, store.count('acquire'));
    assert.ok(refused.attempts > 900);
    assert.equal(refused.holder.fencingToken, other!.fencingToken);
    store.always('acquire', unavailable);
    const failing = watched(leases.acquire('run-1', { waitSeconds: 5 }));
    await clock.advance(5.1);
    const error = failing.error as Error;
    assert.equal((error as { code?: string }).code, 'STORE_UNAVAILABLE');
    assert.equal((error.cause as { code?: string }).code, 'STORE_UNAVAILABLE');
    assert.match(error.message, /\d+ times/);
    assert.equal(clock.armed, 0);
  });

  it('AQ9. When the wait is over the callback does not run, however often the other worker renews', async () => {
    const { clock, store, leases } = bench();
    const answer = await store.inner.acquire({ runId: 'run-1', workerId: 'b', acquisitionId: '1', ttlSeconds: TTL });
    assert.ok(answer.status === 'granted');
    let ran = false;
    const start = clock.monotonicSeconds();
    const holding = watched(leases.hold('run-1', { waitSeconds: TTL + 1 }, () => (ran = true)));
    for (let second = 0; second < TTL + 3 && !holding.settled; second += 1) {
      await clock.advance(1);
      await store.inner.renew([answer.lease], TTL);
    }
    const error = holding.error as LeaseNotAvailableError;
    assert.equal(error.holder.workerId, 'b');
    assert.equal(ran, false);
    assert.ok(Math.abs(store.times('acquire').at(-1)! - start - (TTL + 1)) < 1e-6, 'one last ask at the end');
  });

  it('AQ10. A second hold of the same run in one manager is refused at once (C11)', async () => {
    const { store, leases } = bench();
    const done = gate();
    let running = 0;
    let most = 0;
    const work = async (): Promise<void> => {
      most = Math.max(most, (running += 1));
      await done.opened;
      running -= 1;
    };
    const first = watched(leases.hold('run-1', { workerId: 'same', reacquire: 'extend' }, work));
    const side = watched(leases.hold('run-1', { workerId: 'same', reacquire: 'extend', waitSeconds: 60 }, work));
    await settle();
    assert.ok(side.error instanceof LeaseNotAvailableError);
    assert.match(side.error.message, /this manager/);
    assert.equal(await leases.tryAcquire('run-1'), null);
    const nested = leases.hold('run-2', {}, () => leases.hold('run-2', { waitSeconds: 60 }, work));
    await assert.rejects(nested, LeaseNotAvailableError);
    assert.equal(store.count('acquire'), 2, 'the store was not asked');
    done.open();
    await settle();
    assert.equal(first.error, undefined);
    assert.equal(most, 1);
    await leases.hold('run-1', {}, () => undefined);
  });

  it('AQ10. What is refused because this manager still asks for the run says that, and names no token', async () => {
    const { store, leases, rival } = bench();
    const other = await rival();
    const abort = new AbortController();
    const first = leases.acquire('run-1', { waitSeconds: 60, signal: abort.signal });
    await settle();
    await assert.rejects(leases.acquire('run-1'), (error: LeaseNotAvailableError) => {
      assert.match(error.message, /this manager is asking for it already/);
      assert.equal(error.holder.fencingToken, 0);
      return true;
    });
    abort.abort(new Error('enough'));
    await assert.rejects(first, { message: 'enough' });
    await store.inner.release(other!);
    const lease = await leases.acquire('run-1');
    await assert.rejects(leases.acquire('run-1'), { message: /\(token 2\): this manager has it already/ });
    await lease.release();
  });

  it('C16 an ask that was given up and comes late ends no newer hold of the same worker', async () => {
    const { store, leases, rival } = bench();
    const arrives = gate();
    store.next('acquire', heldUp(arrives.opened));
    const controller = new AbortController();
    const givenUp = watched(leases.acquire('run-1', { signal: controller.signal }));
    await settle();
    controller.abort();
    await settle();
    assert.ok(givenUp.settled);
    const held = await leases.acquire('run-1');
    arrives.open();
    await settle();
    assert.equal(await rival(), null);
    held.assertHeld();
    const [renewed] = await store.inner.renew([held], TTL);
    assert.equal(renewed?.status, 'renewed');
    await leases.close();
  });

  it('C11 while work goes on under a lost lease its run stays taken in this manager', async () => {
    const { clock, store, leases } = bench();
    const done = gate();
    store.always('renew', unavailable);
    const holding = watched(leases.hold('run-1', {}, () => done.opened));
    await clock.advance(TTL + 1);
    await assert.rejects(leases.acquire('run-1'), LeaseNotAvailableError);
    done.open();
    await settle();
    assert.equal((holding.error as { code: string }).code, 'LEASE_LOST');
    await leases.hold('run-1', {}, () => undefined);
  });

  it('AQ13. Trying once is one question and a value', async () => {
    const { clock, store, leases, rival } = bench();
    await rival();
    assert.equal(await leases.tryAcquire('run-1'), null);
    assert.equal(store.calls.length, 1);
    assert.equal(clock.armed, 0);
    const lease = await leases.tryAcquire('run-2');
    assert.equal(lease!.runId, 'run-2');
    assert.equal(store.calls.length, 2);
    await leases.close();
  });

  it('C12 closing ends every wait at once', async () => {
    const { clock, store, leases, rival } = bench();
    await rival();
    const waiting = watched(leases.acquire('run-1', { waitSeconds: 100 }));
    store.next('acquire', hang);
    const asking = watched(leases.acquire('run-2'));
    await settle();
    await leases.close();
    assert.equal((waiting.error as Error).name, 'AbortError');
    assert.equal((asking.error as Error).name, 'AbortError');
    assert.equal(store.count('release'), 1, 'for the ask that was on its way');
    await assert.rejects(leases.acquire('run-3'), TypeError);
    await assert.rejects(leases.guard({ runId: 'a', workerId: 'b', fencingToken: 1 }), TypeError);
    assert.equal(clock.armed, 0);
  });

  it('C6 an error that repeating cannot mend ends the wait at once', async () => {
    const { clock, store, leases } = bench();
    const error = new RangeError('No fencing token is left');
    store.next('acquire', () => Promise.reject(error));
    await assert.rejects(leases.acquire('run-1', { waitSeconds: 100 }), error);
    assert.equal(store.calls.length, 1);
    assert.equal(clock.armed, 0);
  });

  it('C12 the listeners of the caller are taken away again', async () => {
    const { leases } = bench();
    const { signal } = new AbortController();
    let listeners = 0;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...call: Parameters<typeof addEventListener>) => {
      listeners += 1;
      addEventListener.apply(signal, call);
    };
    signal.removeEventListener = (...call: Parameters<typeof removeEventListener>) => {
      listeners -= 1;
      removeEventListener.apply(signal, call);
    };
    await leases.hold('run-1', { signal }, () => assert.equal(listeners, 0));
    assert.equal(listeners, 0);
  });

  it('C12 a slow grant within the request timeout is returned', async () => {
    const { clock, store, leases } = bench();
    const slow = gate();
    store.next('acquire', answeredLate(slow.opened));
    const acquiring = watched(leases.acquire('run-1'));
    await clock.advance(4.9);
    slow.open();
    await settle();
    assert.equal(acquiring.value!.fencingToken, 1);
    await leases.close();
  });
});
