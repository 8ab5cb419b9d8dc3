import { describe, expect, it } from 'vitest';
import { full } from './bounds.ts';
import type { FenceDesign } from './fence-model.ts';
import { fenceModel, SHIPPED } from './fence-model.ts';
import { search } from './search.ts';

const BOUNDS = { workers: 3, acquisitions: 3, commits: 3 };

describe('V3 the fence, searched exhaustively', () => {
  it('B16-B19 lets no older write land, loses no update, refuses no current lease and issues no token twice', () => {
    const bounds = full ? { ...BOUNDS, acquisitions: 5, commits: 5 } : BOUNDS;
    const result = search(fenceModel(SHIPPED, bounds));
    console.log(`fence: ${result.states} states, ${result.edges} edges, depth ${result.depth}`);
    expect(result.violation).toBeNull();
    if (!full) expect([result.states, result.edges, result.depth]).toEqual([11824, 43764, 27]);
  }, 600_000);

  it('TK8 two processes with one worker id: no stale write either', () => {
    const result = search(fenceModel(SHIPPED, { ...BOUNDS, oneWorkerId: true }));
    expect(result.violation).toBeNull();
  });

  const broken: [what: string, change: Partial<FenceDesign>, violation: string, one: boolean, steps: number][] = [
    [
      'the fence row alone, lease row not checked',
      { checksLease: false },
      'a check made after the take-over passed',
      false,
      6,
    ],
    ['the lease row alone, no fence row locked', { locksFence: false }, 'an update was lost', false, 13],
    ['a read before the fence is raised', { readsAfterRaising: false }, 'an update was lost', false, 13],
    [
      'acquisitions that are not compared',
      { comparesAcquisition: false },
      'an older write landed after a newer one',
      true,
      12,
    ],
    [
      'a re-acquire that leaves the fence row behind',
      { reacquireMovesFence: false },
      'the current lease was refused',
      false,
      9,
    ],
    [
      'a re-acquire that does not wait for the open transaction',
      { reacquireWaits: false },
      'an older acquisition committed after it was retired',
      true,
      7,
    ],
    ['a lease row that is deleted', { keepsLeaseRow: false }, 'a token was issued twice', false, 3],
  ];

  it.each(broken)('must fail: %s', (_what, change, violation, oneWorkerId, steps) => {
    const result = search(fenceModel({ ...SHIPPED, ...change }, { ...BOUNDS, oneWorkerId }));
    expect(result.violation?.what).toBe(violation);
    expect(result.violation?.trace.length, result.violation?.trace.join('; ')).toBe(steps);
  });
});
