import assert from 'node:assert/strict';
import { describe, it } from 'vitest';
import { bench, gate, TTL, watched } from './bench.ts';
import { settle } from './virtual-clock.ts';

describe('work that has not begun, or only just', () => {
  it('CB3. A hold whose lease a listener of its grant releases rejects, and its work does not run', async () => {
    const { clock, leases, news } = bench();
    leases.on('granted', ({ lease }) => void lease.release());
    let ran = false;
    const holding = leases.hold('run-1', {}, () => (ran = true));
    await assert.rejects(holding, { code: 'LEASE_LOST', reason: 'released' });
    assert.equal(ran, false);
    assert.deepEqual(news, ['granted', 'released']);
    assert.equal(clock.armed, 0);
  });

  it('CB3. A hold whose manager a listener of its grant closes rejects, and its work does not run', async () => {
    const { clock, store, leases } = bench();
    const closings: Promise<void>[] = [];
    leases.on('granted', () => closings.push(leases.close()));
    let ran = false;
    const holding = leases.hold('run-1', {}, () => (ran = true));
    await assert.rejects(holding, { code: 'LEASE_LOST', reason: 'released' });
    await Promise.all(closings);
    assert.equal(ran, false);
    assert.equal((await store.inner.read('run-1'))!.state, 'free');
    assert.equal(clock.armed, 0);
  });

  it('CB3. Whenever close() comes, the work of a hold runs to its end under its lease or not at all', async () => {
    for (let turns = 0; turns < 60; turns += 1) {
      const { clock, store, leases } = bench();
      const states: (string | undefined)[] = [];
      const holding = watched(
        leases.hold('run-1', {}, async (lease) => {
          await settle();
          states.push((await store.inner.read('run-1'))?.state);
          lease.assertHeld();
          return 42;
        }),
      );
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      await leases.close();
      await settle();
      assert.equal(holding.settled, true);
      if (states.length > 0) assert.deepEqual([states, holding.value], [['held'], 42], `closed in turn ${turns}`);
      else assert.ok(holding.error instanceof Error, `closed in turn ${turns}`);
      assert.equal(clock.armed, 0);
    }
  });

  it('CB3. close() waits for work that calls it before anything else', async () => {
    const { store, leases } = bench();
    const done = gate();
    const closings: Promise<void>[] = [];
    const holding = leases.hold('run-1', {}, async (lease) => {
      closings.push(leases.close());
      await done.opened;
      lease.assertHeld();
      return 42;
    });
    await settle();
    assert.equal(store.count('release'), 0);
    done.open();
    assert.equal(await holding, 42);
    await Promise.all(closings);
    assert.equal(store.count('release'), 1);
  });

  it('C11 the run stays taken here while work goes on that lost its lease before its first await', async () => {
    const { clock, leases } = bench();
    const done = gate();
    const holding = watched(
      leases.hold('run-1', {}, (lease) => {
        clock.block(TTL);
        assert.equal(lease.remainingSeconds(), 0);
        return done.opened;
      }),
    );
    await settle();
    assert.equal(await leases.tryAcquire('run-1'), null);
    done.open();
    await settle();
    assert.equal((holding.error as { code: string }).code, 'LEASE_LOST');
    const next = await leases.tryAcquire('run-1');
    assert.equal(next?.fencingToken, 2);
    await leases.close();
  });
});
