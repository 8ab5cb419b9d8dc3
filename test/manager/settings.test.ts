import assert from 'node:assert/strict';
import { describe, it } from 'vitest';
import { LeaseManager } from '../../src/manager/lease-manager.ts';
import type { LeaseManagerOptions } from '../../src/manager/settings.ts';
import { bench } from './bench.ts';

const NO_DURATION = [0, -0, -1, NaN, Infinity, -Infinity, '30', 30n, null, new Date(0)];

describe('the settings of a manager', () => {
  const durations = [
    'ttlSeconds',
    'renewSeconds',
    'requestTimeoutSeconds',
    'releaseTimeoutSeconds',
    'pollSeconds',
  ] as const;
  for (const name of durations) {
    it(`NM1. A ${name} that makes no sense is refused by name`, () => {
      const { store } = bench();
      for (const value of NO_DURATION) {
        assert.throws(() => new LeaseManager(store, { [name]: value }), named(name));
      }
    });
  }

  it('NM1. Drift, granularity, worker id, clock and flags that make no sense are refused by name', () => {
    const { store } = bench();
    const bad: Record<string, unknown[]> = {
      drift: [-0.1, 1, 2, NaN, '0', null],
      granularitySeconds: [-1, NaN, Infinity, '0'],
      workerId: ['', 1, 'a\0b', '\ud800', 'x'.repeat(1025)],
      autoRenew: [0, 'yes', null],
      allowLongTtl: [1],
      clock: [null, {}, 5],
    };
    for (const [name, values] of Object.entries(bad)) {
      for (const value of values) {
        assert.throws(() => new LeaseManager(store, { [name]: value }), named(name), `${name}: ${String(value)}`);
      }
    }
    assert.throws(() => new LeaseManager({} as never), named('store'));
    assert.throws(() => new LeaseManager(undefined as never), named('store'));
  });

  it('N a ttl under 1 is refused, and one above 86,400 unless asked for', () => {
    const { store } = bench();
    for (const ttlSeconds of [0.001, 0.5, 0.999]) {
      assert.throws(() => new LeaseManager(store, { ttlSeconds }), named('ttlSeconds'));
    }
    for (const ttlSeconds of [1, 1.5, 86_400]) assert.ok(new LeaseManager(store, { ttlSeconds }));
    assert.throws(() => new LeaseManager(store, { ttlSeconds: 86_401 }), named('allowLongTtl'));
    assert.ok(new LeaseManager(store, { ttlSeconds: 1e8, allowLongTtl: true }));
  });

  it('C17 settings that allow fewer than two attempts to renew are refused, with their names', () => {
    const { store } = bench();
    const refused: LeaseManagerOptions[] = [
      { ttlSeconds: 30, renewSeconds: 30 },
      { ttlSeconds: 30, renewSeconds: 20 },
      { ttlSeconds: 30, requestTimeoutSeconds: 10 },
      { ttlSeconds: 30, drift: 0.5 },
      { ttlSeconds: 30, granularitySeconds: 10 },
      { ttlSeconds: 30, granularitySeconds: 40, autoRenew: false },
      { ttlSeconds: 30, requestTimeoutSeconds: 30, autoRenew: false },
      { ttlSeconds: 1, granularitySeconds: 0.4 },
    ];
    for (const options of refused) {
      assert.throws(
        () => new LeaseManager(store, options),
        (error: Error) => {
          assert.ok(error instanceof RangeError);
          for (const name of ['ttlSeconds', 'drift', 'granularitySeconds', 'requestTimeoutSeconds']) {
            assert.ok(error.message.includes(name), `${error.message} names ${name}`);
          }
          return true;
        },
      );
    }
    assert.ok(new LeaseManager(store, { ttlSeconds: 30, renewSeconds: 19 }));
    assert.ok(new LeaseManager(store, { ttlSeconds: 30, renewSeconds: 29, autoRenew: false }));
  });

  it('C17 the settings of one acquire are held to the same rules, before any I/O', async () => {
    const { store, leases } = bench({ renewSeconds: 10, requestTimeoutSeconds: 5 });
    for (const ttlSeconds of [0.5, 15, 100_000])
      await assert.rejects(leases.acquire('run-1', { ttlSeconds }), RangeError);
    assert.equal(store.calls.length, 0);
    const lease = await leases.acquire('run-1', { ttlSeconds: 60 });
    assert.equal(lease.ttlSeconds, 60);
    assert.ok(lease.remainingSeconds() > 59);
    await leases.close();
  });

  it('NM1. An argument of acquire that makes no sense is refused before any I/O, by name', async () => {
    const { store, leases } = bench();
    const options: Record<string, unknown[]> = {
      ttlSeconds: NO_DURATION,
      waitSeconds: [-1, NaN, -Infinity, '1', 1n, null],
      workerId: ['', 7, null, 'a\0'],
      signal: [{}, 'signal', null],
      autoRenew: ['yes', 1, null],
      reacquire: ['steal', null, 1],
    };
    for (const [name, values] of Object.entries(options)) {
      for (const value of values) {
        await assert.rejects(leases.acquire('run-1', { [name]: value }), named(name), `${name}: ${String(value)}`);
      }
    }
    for (const runId of ['', 7, null, undefined, 'a\0b', '\ud800', 'x'.repeat(1025)]) {
      await assert.rejects(leases.acquire(runId as never), named('runId'));
      await assert.rejects(leases.tryAcquire(runId as never), named('runId'));
      await assert.rejects(
        leases.hold(runId as never, {}, () => 1),
        named('runId'),
      );
    }
    for (const no of [null, 5, 'options']) {
      await assert.rejects(leases.acquire('run-1', no as never), named('options'));
      await assert.rejects(leases.tryAcquire('run-1', no as never), named('options'));
    }
    for (const lease of [null, {}, { runId: 'a', workerId: 'b', fencingToken: 0 }]) {
      await assert.rejects(leases.guard(lease as never), named('lease'));
    }
    assert.throws(() => leases.on('lost', undefined as never), named('listener'));
    assert.equal(store.calls.length, 0);
  });

  it('I names that look odd are runs of their own', async () => {
    const { leases } = bench();
    const names = [
      '__proto__',
      'constructor',
      '../x',
      '{tag}',
      '*',
      'a:b',
      ' a',
      'a ',
      'a',
      'A',
      '\n',
      'é',
      'e\u0301',
      '🦊',
    ];
    const held = await Promise.all(names.map((runId) => leases.acquire(runId)));
    assert.equal(new Set(held.map(({ fencingToken }) => fencingToken)).size, names.length);
    await leases.close();
  });

  it('TK8. The default worker ids of two managers differ, in one process too', () => {
    const { store } = bench();
    const ids = new Set(Array.from({ length: 100 }, () => new LeaseManager(store).workerId));
    assert.equal(ids.size, 100);
    assert.ok([...ids].every((id) => id.includes(String(process.pid))));
  });
});

function named(name: string): (error: Error) => boolean {
  return (error) => {
    assert.ok(error instanceof TypeError || error instanceof RangeError, `${error.name}: ${error.message}`);
    assert.ok(error.message.includes(name), `"${error.message}" names ${name}`);
    return true;
  };
}
