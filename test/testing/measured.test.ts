import { describe, expect, it } from 'vitest';
import { measured } from '../../src/testing/measured.ts';
import { WrongStore } from './wrong-stores.ts';

const create = async () => new WrongStore('none', () => 0);
const harness = { name: 'slow', create, ttlSeconds: 0.02, advance: async () => undefined };

describe('a rule on a clock that runs by itself', () => {
  it('is measured again with a longer ttl, on a new store, when the calls took a good part of the ttl', async () => {
    const ttls: number[] = [];
    const stores = new Set<unknown>();
    await measured(
      async ({ ttlSeconds, store }) => {
        ttls.push(ttlSeconds);
        stores.add(store);
        const until = performance.now() + 50;
        while (performance.now() < until);
        if (ttlSeconds < 0.2) throw new Error('expired meanwhile');
      },
      { ...harness, timePasses: true },
    );
    expect(ttls).toEqual([0.02, 0.08, 0.32]);
    expect(stores.size).toBe(3);
  });

  it('fails at once when it failed in time', async () => {
    let runs = 0;
    const failing = measured(
      async () => {
        runs += 1;
        throw new Error('wrong');
      },
      { ...harness, ttlSeconds: 10, timePasses: true },
    );
    await expect(failing).rejects.toThrow('wrong');
    expect(runs).toBe(1);
  });

  it('fails at once on a clock that is jumped, however slow the machine', async () => {
    let runs = 0;
    const failing = measured(async () => {
      runs += 1;
      const until = performance.now() + 50;
      while (performance.now() < until);
      throw new Error('wrong');
    }, harness);
    await expect(failing).rejects.toThrow('wrong');
    expect(runs).toBe(1);
  });
});
