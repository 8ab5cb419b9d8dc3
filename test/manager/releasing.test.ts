import assert from 'node:assert/strict';
import { describe, it } from 'vitest';
import { LeaseLostError } from '../../src/errors.ts';
import { bench, gate, TTL, watched } from './bench.ts';
import { hang, heldUp, loseReply, unavailable } from './scripted-store.ts';
import { settle } from './virtual-clock.ts';

describe('releasing', () => {
  it('RL1. A late release does not free the lease of the successor, also under the same worker id', async () => {
    for (const successor of ['worker-b', 'worker-a']) {
      const { clock, store, leases } = bench({ autoRenew: false });
      const lease = await leases.acquire('run-1');
      clock.block(TTL);
      const answer = await store.inner.acquire({
        runId: 'run-1',
        workerId: successor,
        acquisitionId: 'another',
        ttlSeconds: TTL,
      });
      assert.equal(answer.status, 'granted');
      assert.equal(await lease.release(), false);
      assert.equal((await store.inner.read('run-1'))!.state, 'held');
    }
  });

  it('RL2. A release that was delayed on its way does not free a later acquisition of the same worker', async () => {
    const { clock, store, leases, rival } = bench();
    const slow = gate();
    store.next('release', heldUp(slow.opened));
    const lease = await leases.acquire('run-1');
    const releasing = watched(lease.release());
    await settle();
    const again = await store.inner.acquire({
      runId: 'run-1',
      workerId: 'worker-a',
      acquisitionId: 'the newer one',
      ttlSeconds: TTL,
    });
    assert.ok(again.status === 'granted' && again.lease.fencingToken === lease.fencingToken);
    slow.open();
    await settle();
    assert.equal(releasing.value, false);
    assert.equal(await rival(), null);
    assert.equal(clock.armed, 0);
  });

  it('RL3. Releasing twice, in turn or at once, is harmless and one request', async () => {
    const { store, leases, news } = bench();
    const lease = await leases.acquire('run-1');
    assert.deepEqual(await Promise.all([lease.release(), lease.release()]), [true, true]);
    assert.equal(await lease.release(), true);
    await lease[Symbol.asyncDispose]();
    assert.equal(store.count('release'), 1);
    assert.deepEqual(news, ['granted', 'released']);
  });

  it('RL3. A release whose reply got lost is repeated, and "not yours" then means that it was done', async () => {
    const { clock, store, leases, news } = bench();
    store.next('release', loseReply);
    const lease = await leases.acquire('run-1');
    const releasing = watched(lease.release());
    await clock.advance(5.2);
    assert.equal(releasing.value, true);
    assert.equal(store.count('release'), 2);
    assert.deepEqual(news, ['granted', 'released']);
    assert.equal(clock.armed, 0);
  });

  it('RL4. Releasing has its own bound: "no longer yours" is final, a stopped server ends it in time', async () => {
    for (const fault of [unavailable, hang, loseReply]) {
      const { clock, store, leases } = bench();
      const lease = await leases.acquire('run-1', { waitSeconds: Infinity });
      await store.inner.release(lease);
      assert.equal(await lease.release(), false);
      assert.equal(store.count('release'), 1, 'not retried');
      const other = await leases.acquire('run-2', { waitSeconds: Infinity });
      store.always('release', fault);
      const releasing = watched(other.release());
      await clock.advance(10.1);
      assert.equal(releasing.settled, true);
      assert.match((releasing.error as { code: string }).code, /STORE_UNAVAILABLE|OUTCOME_UNKNOWN/);
      assert.ok(store.count('release') < 15);
      assert.equal(clock.armed, 0);
    }
  });

  it('C10 nothing is sent and nothing is armed after a release', async () => {
    const { clock, store, leases } = bench();
    const lease = await leases.acquire('run-1');
    await clock.advance(12);
    await lease.release();
    const sent = store.calls.length;
    await clock.advance(3 * TTL);
    assert.equal(store.calls.length, sent);
    assert.equal(clock.armed, 0);
    await assert.rejects(lease.renew(), { code: 'LEASE_LOST', reason: 'released' });
    assert.equal(lease.remainingSeconds(), 0);
  });

  it('C10 a renewal by hand on its way is settled before its lease is released', async () => {
    const { clock, store, leases } = bench();
    const slow = gate();
    store.next('renew', heldUp(slow.opened));
    const lease = await leases.acquire('run-1');
    const renewing = watched(lease.renew());
    await clock.advance(0.001);
    const releasing = watched(lease.release());
    await settle();
    assert.equal(releasing.settled, false);
    slow.open();
    await settle();
    assert.equal(releasing.value, true);
    assert.ok(renewing.error instanceof LeaseLostError);
    assert.deepEqual(
      store.calls.map(({ method }) => method),
      ['acquire', 'renew', 'release'],
    );
  });

  it('RL7. Closing releases every lease, even when one fails, and tells every error', async () => {
    const { clock, store, leases } = bench();
    for (const runId of ['run-1', 'run-2', 'run-3']) await leases.acquire(runId);
    const error = new RangeError('Refused by the store');
    store.next('release', () => Promise.reject(error));
    await assert.rejects(leases.close(), (closing: AggregateError) => {
      assert.deepEqual(closing.errors, [error]);
      return true;
    });
    assert.equal(store.count('release'), 3);
    assert.equal((await store.inner.read('run-2'))!.state, 'free');
    assert.equal((await store.inner.read('run-3'))!.state, 'free');
    assert.equal(clock.armed, 0);
  });

  it('C12 closing twice, and with 10,000 holds, ends everything', async () => {
    const { clock, store, leases } = bench();
    const holds: Promise<unknown>[] = [];
    const done = gate();
    for (let run = 0; run < 10_000; run += 1) holds.push(leases.hold(`run-${run}`, {}, () => done.opened));
    await settle();
    const closing = watched(leases.close());
    await settle();
    assert.equal(closing.settled, false, 'it waits for the work');
    assert.equal(store.count('release'), 0);
    done.open();
    await Promise.all(holds);
    await leases.close();
    await leases.close();
    assert.equal(store.count('release'), 10_000);
    assert.equal(clock.armed, 0);
  }, 120_000);
});
