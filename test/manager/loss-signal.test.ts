import { describe, expect, it } from 'vitest';
import { lossController } from '../../src/manager/loss-signal.ts';

describe('the signal of a lease', () => {
  it('takes no listener, and refuses what is none, as any signal does', () => {
    const { signal } = lossController();
    const plain = new AbortController().signal;
    for (const one of [signal, plain]) {
      one.addEventListener('abort', null as never);
      one.removeEventListener('abort', null as never);
      expect(() => one.addEventListener('abort', 'no listener' as never)).toThrow(TypeError);
    }
    expect(() => signal.addEventListener('abort', 'no listener' as never)).toThrow('listener');
  });

  it('calls a listener once, and not after it was taken away', () => {
    const controller = lossController();
    const calls: string[] = [];
    const kept = () => void calls.push('kept');
    const removed = { handleEvent: () => void calls.push('removed') };
    controller.signal.addEventListener('abort', kept);
    controller.signal.addEventListener('abort', kept);
    controller.signal.addEventListener('abort', removed);
    controller.signal.removeEventListener('abort', removed);
    controller.abort();
    expect(calls).toEqual(['kept']);
  });
});
