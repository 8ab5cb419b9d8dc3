import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it } from 'vitest';
import { LeaseLostError } from '../../src/errors.ts';
import type { HeldLease } from '../../src/manager/held-lease.ts';
import { bench, gate, TTL, watched } from './bench.ts';
import { answering, unavailable } from './scripted-store.ts';
import { settle } from './virtual-clock.ts';

describe('work under a lease', () => {
  it('CB1. A hold whose lease was lost never ends as a success, and keeps the result', async () => {
    const { clock, store, leases } = bench();
    const done = gate();
    const holding = watched(leases.hold('run-1', {}, () => done.opened.then(() => 42)));
    await clock.advance(1);
    await store.inner.revoke('run-1', { by: 'operator', reason: 'stuck' });
    await clock.advance(TTL / 2);
    assert.equal(holding.settled, false, 'it waits for the work');
    done.open();
    await settle();
    assert.ok(holding.error instanceof LeaseLostError);
    assert.equal(holding.error.reason, 'revoked');
    assert.equal(holding.error.result, 42);
    assert.equal(store.count('release'), 0);
    assert.equal(clock.armed, 0);
  });

  it('CB1. Without renewals, work that returns after the ttl has lost', async () => {
    const { clock, leases } = bench();
    const work = async (): Promise<number> => {
      clock.block(TTL);
      return 42;
    };
    const holding = leases.hold('run-1', { autoRenew: false }, work);
    await assert.rejects(holding, { code: 'LEASE_LOST', reason: 'expired', result: 42 });
    assert.equal(clock.armed, 0);
  });

  it('CB1. The error of work whose lease was lost is attached to the loss', async () => {
    const { clock, leases } = bench();
    const workError = new Error('of the work');
    const work = (): never => {
      clock.block(TTL);
      throw workError;
    };
    await assert.rejects(leases.hold('run-1', {}, work), { code: 'LEASE_LOST', workError });
    const rethrowing = leases.hold('run-2', {}, (lease) => {
      clock.block(TTL);
      lease.assertHeld();
    });
    await assert.rejects(rethrowing, (error) => error instanceof LeaseLostError && error.workError === undefined);
  });

  it('CB2. The reason of the abort is the loss itself, through fetch, timers and AbortSignal.any', async () => {
    const server = createServer(() => undefined).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    try {
      const { clock, store, leases } = bench();
      const lease = await leases.acquire('run-1');
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const asked = new Promise((resolve) => server.once('request', resolve));
      const all = Promise.allSettled([
        fetch(url, { signal: lease.signal }),
        sleep(60_000, undefined, { signal: lease.signal }),
        fetch(url, { signal: AbortSignal.any([lease.signal, new AbortController().signal]) }),
      ]);
      await asked;
      store.always('renew', unavailable);
      await clock.advance(TTL);
      const [fetched, slept, any] = (await all) as { reason: unknown }[];
      const loss = lease.signal.reason as LeaseLostError & { sinceRenewalSeconds: number };
      assert.ok(loss instanceof LeaseLostError);
      assert.equal(fetched!.reason, loss);
      assert.equal((slept!.reason as Error).cause, loss);
      assert.equal(any!.reason, loss);
      assert.deepEqual([loss.runId, loss.fencingToken, loss.reason], ['run-1', 1, 'expired']);
      assert.equal((loss.cause as { code: string }).code, 'STORE_UNAVAILABLE');
      assert.ok(Math.abs(loss.sinceRenewalSeconds - 29.685) < 1e-5, 'the last good request was sent so long before');
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it('CB3. A lease is not released while its callback still runs, though the caller has aborted', async () => {
    const { clock, store, leases, rival } = bench();
    const abort = new AbortController();
    const done = gate();
    const holding = watched(leases.hold('run-1', { signal: abort.signal }, () => done.opened));
    await clock.advance(1);
    abort.abort(new Error('the caller gives up'));
    await clock.advance(3 * TTL);
    assert.equal(await rival(), null, 'renewed until the callback has settled');
    assert.equal(store.count('release'), 0);
    done.open();
    await settle();
    assert.equal(holding.error, undefined);
    assert.ok(await rival(), 'RL6. A release is sent also when the signal of the caller has aborted');
    assert.equal(clock.armed, 0);
  });

  it('C9 the result of the work comes out, and its error, with the run free in both cases', async () => {
    const { store, leases } = bench();
    assert.equal(await leases.hold('run-1', {}, () => 42), 42);
    assert.equal(await leases.hold('run-1', {}, async () => 'later'), 'later');
    const error = new Error('of the work');
    await assert.rejects(
      leases.hold('run-1', {}, () => Promise.reject(error)),
      error,
    );
    await assert.rejects(
      leases.hold('run-1', {}, () => {
        throw error;
      }),
      error,
    );
    assert.equal((await store.inner.read('run-1'))!.state, 'free');
    assert.equal(store.count('release'), 4);
  });

  it('C9 a failing release hides neither the result nor the error of the work', async () => {
    const { clock, store, leases, news } = bench();
    store.always('release', unavailable);
    const fine = watched(leases.hold('run-1', {}, () => 42));
    const error = new Error('of the work');
    const failed = watched(leases.hold('run-2', {}, () => Promise.reject(error)));
    await clock.advance(11);
    assert.equal(fine.value, 42);
    assert.equal(failed.error, error);
    assert.deepEqual(news, ['granted', 'granted', 'released', 'released']);
    assert.equal(clock.armed, 0);
  });

  it('C9 a loss that only the release learns of is none: the work had settled while it held', async () => {
    const { store, leases, news } = bench();
    store.next('release', answering(false));
    assert.equal(await leases.hold('run-1', {}, () => 42), 42);
    assert.deepEqual(news, ['granted', 'released']);
  });

  it('C12 work that is no function is refused before any I/O', async () => {
    const { store, leases } = bench();
    for (const work of [undefined, null, 'work', {}]) {
      await assert.rejects(leases.hold('run-1', {}, work as never), TypeError);
    }
    assert.equal(store.calls.length, 0);
  });

  it('I work may be a thenable that calls both callbacks, release its own lease, or hold another run', async () => {
    const { leases, news } = bench();
    const thenable = {
      // oxlint-disable-next-line unicorn/no-thenable -- a thenable is what is tried here
      then(resolve: (value: number) => void, reject: (error: Error) => void) {
        resolve(1);
        reject(new Error('ignored'));
      },
    } as PromiseLike<number>;
    assert.equal(await leases.hold('run-1', {}, () => thenable), 1);
    const released = await leases.hold('run-1', {}, async (lease) => {
      assert.equal(await lease.release(), true);
      assert.throws(() => lease.assertHeld(), { code: 'LEASE_LOST', reason: 'released' });
      assert.equal(lease.signal.aborted, false);
      return 2;
    });
    assert.equal(released, 2);
    assert.equal(await leases.hold('run-1', {}, () => leases.hold('run-2', {}, () => 3)), 3);
    assert.deepEqual(
      news.filter((one) => one === 'lost'),
      [],
    );
  });

  it('C4 leaving an `await using` block tells a loss that nothing has told before', async () => {
    const { clock, leases, store } = bench();
    const block = async (inside: (lease: HeldLease) => unknown): Promise<void> => {
      await using lease = await leases.acquire('run-1');
      clock.block(TTL);
      await inside(lease);
    };
    await assert.rejects(
      block(() => undefined),
      LeaseLostError,
    );
    await assert.rejects(
      block((lease) => lease.assertHeld()),
      LeaseLostError,
    );
    await block((lease) => assert.equal(lease.signal.aborted, true));
    store.next('release', answering(false));
    {
      await using lease = await leases.acquire('run-1');
      assert.equal(lease.workerId, 'worker-a');
    }
    assert.equal(clock.armed, 0);
  });

  it('I a lease is plain data: as JSON and as a clone it names itself, without timers or authority', async () => {
    const { leases } = bench();
    const lease = await leases.acquire('run-1');
    const plain = {
      runId: 'run-1',
      workerId: 'worker-a',
      leaseId: 'run-1:worker-a:1',
      fencingToken: 1,
      acquisitionId: lease.acquisitionId,
      ttlSeconds: TTL,
    };
    assert.deepEqual(JSON.parse(JSON.stringify(lease)), plain);
    assert.deepEqual(structuredClone(lease), plain);
    await leases.close();
  });
});
