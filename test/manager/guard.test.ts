import assert from 'node:assert/strict';
import { describe, it } from 'vitest';
import { bench, TTL } from './bench.ts';

describe('guard', () => {
  it('B19 passes while the lease is the newest of its run, also past its expiry', async () => {
    const { clock, leases } = bench({ autoRenew: false });
    const lease = await leases.acquire('run-1');
    await leases.guard(lease);
    clock.block(2 * TTL);
    await leases.guard(lease.toJSON());
  });

  it('B19 rejects once another worker took over, before that one has written anything', async () => {
    const { clock, leases, rival } = bench({ autoRenew: false });
    const lease = await leases.acquire('run-1');
    clock.block(TTL);
    assert.ok(await rival());
    await assert.rejects(leases.guard(lease), { code: 'LEASE_LOST', reason: 'superseded' });
  });

  it('B19 rejects a lease that was released, revoked or never issued', async () => {
    const { store, leases } = bench();
    const lease = await leases.acquire('run-1');
    await lease.release();
    await assert.rejects(leases.guard(lease), { code: 'LEASE_LOST', reason: 'released' });
    const other = await leases.acquire('run-2');
    await store.inner.revoke('run-2', { by: 'operator', reason: 'stuck' });
    await assert.rejects(leases.guard(other), { code: 'LEASE_LOST', reason: 'revoked' });
    const third = await leases.acquire('run-3');
    await assert.rejects(leases.guard({ ...third.toJSON(), fencingToken: 99 }), { reason: 'unknown' });
    await assert.rejects(leases.guard({ ...third.toJSON(), runId: 'never leased' }), { reason: 'unknown' });
    await leases.close();
  });
});
