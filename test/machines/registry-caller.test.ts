import { describe, expect, it } from 'vitest';
import { RegistryCaller } from '../../machines/registry.caller.ts';
import { registryLogic } from '../../machines/registry.logic.ts';

const acquire = { type: 'lease.acquire', runId: 'run-1', workerId: 'worker-a', now: 0 } as const;
const options = { input: { ttlSeconds: 10 } };

describe("a registry's caller", () => {
  it('says of a registry that failed what it failed of, and not that it was stopped', () => {
    const fault = new Error('no memory left');
    const failing = {
      ...registryLogic,
      transition: () => {
        throw fault;
      },
    };
    const caller = new RegistryCaller(failing, options);
    caller.actor.start();
    for (const _ of ['the call that fails', 'a later one']) {
      expect(() => caller.ask(acquire)).toThrow(
        expect.objectContaining({ message: 'The registry failed', cause: fault }),
      );
    }
  });

  it('says of a registry that was stopped just that', () => {
    const caller = new RegistryCaller(registryLogic, options);
    caller.actor.start().stop();
    expect(() => caller.ask(acquire)).toThrow('The registry was stopped');
  });

  it('lets what others send change nothing, unless it is told how to take it', () => {
    const alone = new RegistryCaller(registryLogic, options);
    const open = new RegistryCaller(registryLogic, options, registryLogic.transition);
    for (const { actor } of [alone, open]) actor.start().send(acquire);
    expect(alone.runs.size).toBe(0);
    expect(open.runs.size).toBe(1);
    expect(alone.ask(acquire)).toMatchObject({ type: 'lease.granted' });
    alone.actor.stop();
    expect(alone.actor.getSnapshot().status).toBe('stopped');
  });
});
