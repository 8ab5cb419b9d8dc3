import { describe, expect, it } from 'vitest';
import { assign, createActor, sendTo, setup } from 'xstate';
import type { RegistryAnswer } from '../../src/index.ts';
import { registryLogic } from '../../src/index.ts';

type Call = { type: 'call'; event: Record<string, unknown> };

/** A user's machine that invokes the registry, passes calls on and keeps the answers. */
const orchestrator = setup({
  types: { context: {} as { answers: readonly RegistryAnswer[] }, events: {} as Call | RegistryAnswer },
  actors: { registry: registryLogic },
}).createMachine({
  context: { answers: [] },
  invoke: { src: 'registry', id: 'registry', input: { ttlSeconds: 10 } },
  on: {
    call: { actions: sendTo('registry', ({ event, self }) => ({ ...event.event, replyTo: self }) as never) },
    'lease.*': {
      actions: assign({ answers: ({ context, event }) => [...context.answers, event] }),
    },
  },
});

function start(snapshot?: unknown) {
  const actor = createActor(orchestrator, snapshot ? { snapshot: snapshot as never } : {}).start();
  const call = (event: Record<string, unknown>) => {
    actor.send({ type: 'call', event });
    return actor.getSnapshot().context.answers.at(-1)!;
  };
  return { actor, call };
}

const acquire = (runId: string, workerId: string, now: number) => ({ type: 'lease.acquire', runId, workerId, now });

describe('a registry inside a machine of the user’s own', () => {
  it('answers each call with an event', () => {
    const { call } = start();
    const granted = call(acquire('run-1', 'worker-a', 0));
    expect(granted).toMatchObject({ type: 'lease.granted', lease: { fencingToken: 1 }, previous: null });
    expect(call(acquire('run-1', 'worker-b', 5))).toMatchObject({
      type: 'lease.refused',
      runId: 'run-1',
      lease: { workerId: 'worker-a' },
    });
    const claim = { leaseId: 'run-1:worker-a:1', fencingToken: 1 };
    expect(call({ type: 'lease.heartbeat', ...claim, now: 6 })).toMatchObject({ type: 'lease.renewed' });
    expect(call({ type: 'lease.validate', runId: 'run-1', ...claim, now: 7 })).toEqual({
      type: 'lease.valid',
      ...claim,
    });
    expect(call({ type: 'lease.expire', now: 16 })).toMatchObject({
      type: 'lease.lapsed',
      leases: [{ runId: 'run-1' }],
    });
    expect(call(acquire('run-1', 'worker-b', 16))).toMatchObject({ previous: { workerId: 'worker-a' } });
    expect(call({ type: 'lease.release', ...claim })).toMatchObject({ type: 'lease.invalid', ...claim });
  });

  it('answers a call that makes no sense with its error, and lives on', () => {
    const { actor, call } = start();
    const wrong: [string, object][] = [
      ['now', acquire('run-1', 'worker-a', Number.NaN)],
      ['now', acquire('run-1', 'worker-a', 2 ** 60)],
      ['runId', acquire('', 'worker-a', 0)],
      ['workerId', acquire('run-1', 7 as never, 0)],
      ['ttlSeconds', { ...acquire('run-1', 'worker-a', 0), ttlSeconds: -1 }],
      ['reacquire', { ...acquire('run-1', 'worker-a', 0), reacquire: 'often' }],
      ['fencingToken', { type: 'lease.heartbeat', leaseId: 'x', fencingToken: '1', now: 0 }],
      ['leaseId', { type: 'lease.release', fencingToken: 1 }],
      ['now', { type: 'lease.expire' }],
    ];
    for (const [argument, event] of wrong) {
      const answer = call({ ...event });
      expect(answer.type).toBe('lease.rejected');
      if (answer.type === 'lease.rejected') expect(answer.error.message).toContain(`\`${argument}\``);
    }
    actor.getSnapshot().children['registry']!.send({ type: 'something else' } as never);
    expect(call(acquire('run-1', 'worker-a', 0))).toMatchObject({ type: 'lease.granted', lease: { fencingToken: 1 } });
  });

  it('is persisted and restored with its parent, leases and token counter included', () => {
    const first = start();
    first.call(acquire('run-1', 'worker-a', 0));
    first.call(acquire('run-2', 'worker-b', 3));
    const persisted = JSON.parse(JSON.stringify(first.actor.getPersistedSnapshot()));
    first.actor.stop();
    const second = start(persisted);
    expect(second.call(acquire('run-1', 'worker-b', 9))).toMatchObject({ type: 'lease.refused' });
    expect(second.call(acquire('run-1', 'worker-b', 10))).toMatchObject({
      type: 'lease.granted',
      lease: { fencingToken: 3 },
    });
    expect(
      second.call({ type: 'lease.validate', runId: 'run-2', leaseId: 'run-2:worker-b:2', fencingToken: 2, now: 12 }),
    ).toMatchObject({ type: 'lease.valid' });
  });
});
