import { describe, expect, it } from 'vitest';
import { bench } from './bench.ts';

describe('listening to a manager', () => {
  it('a function that is registered twice is called twice, and each registration ends by itself', async () => {
    const { leases } = bench();
    const runs: string[] = [];
    const listener = ({ lease }: { lease: { runId: string } }): void => void runs.push(lease.runId);
    const stopFirst = leases.on('granted', listener);
    const stopSecond = leases.on('granted', listener);
    await leases.acquire('both');
    expect(runs).toEqual(['both', 'both']);
    stopFirst();
    stopFirst();
    await leases.acquire('one');
    expect(runs).toEqual(['both', 'both', 'one']);
    stopSecond();
    await leases.acquire('none');
    expect(runs).toEqual(['both', 'both', 'one']);
    await leases.close();
  });
});
