import { describe, expect, it } from 'vitest';
import { full } from './bounds.ts';
import { ChartComparison } from './registry-chart.ts';
import { expireExclusively, releaseWithoutToken, reviveByHeartbeat } from './registry-faults.ts';
import type { RegistryDesign } from './registry-model.ts';
import { registryModel } from './registry-model.ts';
import { walkEdges, walkPaths } from './registry-walk.ts';
import { search } from './search.ts';

const BOUNDS = full ? { ticks: 7, grants: 5 } : { ticks: 6, grants: 4 };
const EDGE_BOUNDS = { ticks: 4, grants: 2 };
const NOTHING_TO_MEND = () => undefined;

describe('V1 the registry, searched exhaustively', () => {
  it('A1-A11 and A16 hold on every edge, and LeaseRegistry itself reaches every state', () => {
    const chart = new ChartComparison('refuse');
    const result = search(registryModel({ reacquire: 'refuse' }, BOUNDS, chart));
    console.log(`registry: ${result.states} states, ${result.edges} edges, depth ${result.depth}`);
    expect(result.violation).toBeNull();
    const { walks, difference } = walkPaths(result, BOUNDS);
    console.log(`registry: ${walks} paths of LeaseRegistry, ${chart.size} different steps of machine and table`);
    expect(difference).toBeNull();
    if (!full) expect([result.states, result.edges, result.depth, walks]).toEqual([48_792, 1_126_280, 19, 24_474]);
  }, 3_600_000);

  it('A1-A11 and A16 hold on every edge, where a worker extends its own lease by acquiring', () => {
    const bounds = full ? BOUNDS : { ticks: 5, grants: 3 };
    const result = search(registryModel({ reacquire: 'extend' }, bounds));
    console.log(`registry, extending: ${result.states} states, ${result.edges} edges, depth ${result.depth}`);
    expect(result.violation).toBeNull();
  }, 3_600_000);

  it('A1-A11 LeaseRegistry itself takes every edge as its runs do', () => {
    const model = registryModel({ reacquire: 'refuse' }, EDGE_BOUNDS);
    const result = search(model);
    const { walks, difference } = walkEdges(model, result, EDGE_BOUNDS);
    console.log(`registry: ${walks} edges of LeaseRegistry`);
    expect(difference).toBeNull();
    expect(walks).toBe(result.edges);
  });

  const refuse: RegistryDesign = { reacquire: 'refuse' };
  const broken: [what: string, plant: () => () => void, design: RegistryDesign, violation: string, steps: number][] = [
    ['an exclusive expiry', expireExclusively, refuse, 'A4 a run without a live lease was refused', 4],
    ['a heartbeat after expiry', reviveByHeartbeat, refuse, 'A6 a heartbeat revived an expired lease', 4],
    [
      'a release without its token',
      () => NOTHING_TO_MEND,
      { ...refuse, mishears: releaseWithoutToken },
      'A8 a release without its own claim succeeded',
      3,
    ],
  ];

  it.each(broken)('must fail: %s', (_what, plant, design, violation, steps) => {
    const mend = plant();
    try {
      const result = search(registryModel(design, BOUNDS, null));
      console.log(`registry, must fail: ${violation}, in ${result.violation?.trace.length} steps`);
      expect(result.violation?.what).toBe(violation);
      expect(result.violation?.trace.length, result.violation?.trace.join('; ')).toBe(steps);
    } finally {
      mend();
    }
  });
});
