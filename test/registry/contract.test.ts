import { describe, expect, it } from 'vitest';
import { LeaseRegistry } from '../../src/index.ts';

describe('the contract of the registry', () => {
  it('hands a run over at the very moment of expiry, and refuses the former worker from then on', () => {
    const registry = new LeaseRegistry({ ttlSeconds: 10 });
    const lease = registry.acquire('run-1', 'worker-a', 0)!;
    expect(lease).toEqual({
      runId: 'run-1',
      workerId: 'worker-a',
      leaseId: 'run-1:worker-a:1',
      fencingToken: 1,
      expiresAt: 10,
    });
    expect(registry.acquire('run-1', 'worker-b', 5)).toBeNull();
    expect(registry.acquire('run-1', 'worker-b', 10)?.fencingToken).toBe(2);
    expect(registry.validate('run-1', lease.leaseId, 1, 11)).toBe(false);
    expect(registry.release(lease.leaseId, 1)).toBe(false);
  });
});
