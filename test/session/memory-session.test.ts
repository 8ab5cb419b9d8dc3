import { describe, expect, it } from 'vitest';
import { LeaseLostError, MemoryStore } from '../../src/index.ts';
import { sessionRules, severalRunsRules } from './session-rules.ts';

describe('sessions on the memory store', () => {
  it.each(Object.entries({ ...sessionRules, ...severalRunsRules }))('%s', async (_title, rule) => {
    let seconds = 0;
    await using store = new MemoryStore({ now: () => seconds });
    await rule({ store, ttlSeconds: 10, advance: async (by) => void (seconds += by) });
  });

  it('options that make no sense are refused by name, before any I/O', async () => {
    await using store = new MemoryStore();
    const granted = await store.acquire({ runId: 'd', workerId: 'a', acquisitionId: 'x', ttlSeconds: 60 });
    const fence = granted.status === 'granted' ? granted.lease : undefined;
    const wrong: [string, object][] = [
      ['workerId', { workerId: '' }],
      ['runs', { runs: 'd' }],
      ['runs[0]', { runs: [7] }],
      ['isolation', { isolation: 'none' }],
      ['fence', { fence: 0 }],
      ['fence', { fence: 1, runs: ['d', 'e'] }],
      ['fence.acquisitionId', { fence: { ...fence, acquisitionId: undefined } }],
      ['fence.fencingToken', { fence: { ...fence, fencingToken: undefined } }],
      ['fence.runId', { fence, runs: ['e'] }],
      ['fence.workerId', { fence, workerId: 'b' }],
      ['fence', { fence: [fence, fence] }],
      ['signal', { signal: 'now' }],
    ];
    for (const [argument, change] of wrong) {
      const session = store.session({ workerId: 'a', runs: ['d'], fence, ...change });
      await expect(session).rejects.toThrow(`\`${argument}\``);
    }
  });

  it('an unknown run of a session is named', async () => {
    await using store = new MemoryStore();
    const session = await store.session({ workerId: 'a', runs: ['d'] });
    expect(() => session.run('e')).toThrow(RangeError);
  });

  it('the error of a fenced commit carries the facts', async () => {
    let seconds = 0;
    await using store = new MemoryStore({ now: () => seconds });
    const granted = await store.acquire({ runId: 'd', workerId: 'a', acquisitionId: 'x', ttlSeconds: 1 });
    if (granted.status !== 'granted') throw new Error('held');
    seconds = 1;
    await store.acquire({ runId: 'd', workerId: 'b', acquisitionId: 'y', ttlSeconds: 1 });
    const error = await store.session({ workerId: 'a', runs: ['d'], fence: granted.lease }).catch((reason) => reason);
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toMatchObject({ name: 'LeaseLostError', runId: 'd', workerId: 'a', fencingToken: 1 });
  });
});
