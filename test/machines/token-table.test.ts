import { describe, expect, it } from 'vitest';
import { TokenTable } from '../../machines/token-table.ts';

describe('token table', () => {
  it('answers as a Map does, for tokens that rise by steps of any size and leave in any order', () => {
    const table = new TokenTable<string>();
    const map = new Map<number, string>();
    let token = 0;
    let seed = 1;
    const random = (below: number): number => (seed = (seed * 48_271) % 0x7fffffff) % below;
    for (let step = 0; step < 20_000; step += 1) {
      token += random(10) === 0 ? 1 + random(300) : 1;
      table.add(token, `run-${token}`);
      map.set(token, `run-${token}`);
      for (let leaving = random(3); leaving > 0; leaving -= 1) {
        // Now and then one that is not there.
        const gone = [...map.keys()][random(Math.min(map.size, 50))] ?? 0;
        const other = random(20) === 0 ? gone + 1_000_000 : gone;
        table.delete(other);
        map.delete(other);
      }
      if (step % 100 !== 0) continue;
      expect([...table.values()]).toEqual([...map.values()]);
      expect(table.size).toBe(map.size);
      for (const [key, value] of map) expect(table.get(key)).toBe(value);
      expect(table.get(token + 1)).toBeUndefined();
    }
  });

  it('knows nothing by what is no token', () => {
    const table = new TokenTable<string>();
    table.add(1, 'run-1');
    for (const odd of [Number.NaN, -1, 0.5, 1.5, Infinity, 2 ** 53]) expect(table.get(odd)).toBeUndefined();
  });

  it('takes a token up to the last one there is', () => {
    const table = new TokenTable<string>();
    table.add(Number.MAX_SAFE_INTEGER, 'last');
    expect(table.get(Number.MAX_SAFE_INTEGER)).toBe('last');
    expect(table.get(Number.MAX_SAFE_INTEGER - 1)).toBeUndefined();
  });
});
