import { describe, expect, it } from 'vitest';
import type { Actor, InspectionEvent } from 'xstate';
import { createActor, setup } from 'xstate';
import { LeaseRegistry, registryLogic } from '../../src/index.ts';

const newRegistry = (inspect?: (event: InspectionEvent) => void) => new LeaseRegistry({ ttlSeconds: 10, inspect });

describe('the actors of a registry', () => {
  it('A3 A17 what is sent to a lease actor changes nothing, also an event that cannot be read', () => {
    const registry = newRegistry();
    const { leaseId, fencingToken } = registry.acquire('run-1', 'worker-a', 0)!;
    const actor = registry.actorOf('run-1')!;
    actor.send({ type: 'release', leaseId, fencingToken });
    actor.send({
      type: 'release',
      fencingToken,
      get leaseId(): string {
        throw new Error('an event that cannot be read');
      },
    });
    expect(actor.getSnapshot()).toMatchObject({ status: 'active', value: 'held' });
    expect(registry.leases()).toHaveLength(1);
    expect(registry.toJSON().leases).toHaveLength(1);
    expect(registry.heartbeat(leaseId, fencingToken, 5)).toBe(true);
    expect(actor.getSnapshot()).toMatchObject({ rule: 'R5', context: { lease: { expiresAt: 15 } } });
    expect(registry.release(leaseId, fencingToken)).toBe(true);
    expect(actor.getSnapshot().value).toBe('free');
  });

  it('A1 a subscriber that calls the registry is never told of another worker’s lease as its own', () => {
    const registry = newRegistry();
    const caught: unknown[] = [];
    registry.actor.subscribe(() => {
      try {
        caught.push(registry.acquire('run-1', 'worker-b', 0));
      } catch (error) {
        caught.push(String(error));
      }
    });
    registry.actor.send({ type: 'lease.acquire', runId: 'run-1', workerId: 'worker-a', now: 0 });
    expect(caught).toEqual([expect.stringContaining('Listeners of `on` may')]);
    expect(registry.get('run-1')?.workerId).toBe('worker-a');
    expect(registry.acquire('run-2', 'worker-b', 0)?.fencingToken).toBe(2);
  });

  it('A3 a call that failed from within the actor’s own step takes no effect afterwards', () => {
    const registry = newRegistry();
    const { unsubscribe } = registry.actor.subscribe(() => {
      unsubscribe();
      expect(() => registry.acquire('run-2', 'worker-b', 0)).toThrow('Listeners of `on` may');
    });
    registry.actor.send({ type: 'lease.acquire', runId: 'run-1', workerId: 'worker-a', now: 0 });
    expect(registry.leases().map(({ runId }) => runId)).toEqual(['run-1']);
  });

  it('A11 A15 a call that makes no sense is rejected, also when it is sent to the actor', () => {
    const registry = newRegistry();
    const answers: unknown[] = [];
    const replyTo = { send: ({ type }: { type: string }) => void answers.push(type) };
    const acquire = { type: 'lease.acquire', runId: 'run-1', workerId: 'worker-a', replyTo } as const;
    registry.actor.send({ ...acquire, now: Number.NaN });
    registry.actor.send({ ...acquire, now: 0, workerId: 7 as never });
    registry.actor.send({ type: 'lease.acquire' } as never);
    expect(answers).toEqual(['lease.rejected', 'lease.rejected']);
    expect(registry.leases()).toEqual([]);
    registry.actor.send({ ...acquire, now: 0 });
    expect(registry.get('run-1')).toMatchObject({ fencingToken: 1, expiresAt: 10 });
  });

  it('A13 a registry that was stopped can still be read and written down, with every lease', () => {
    const registry = newRegistry();
    registry.acquire('run-1', 'worker-a', 0);
    const actor = registry.actorOf('run-1')!;
    registry.acquire('run-2', 'worker-a', 0);
    const before = registry.toJSON();
    registry.actor.stop();
    expect(registry.toJSON()).toEqual(before);
    expect(registry.get('run-1')?.fencingToken).toBe(1);
    expect(actor.getSnapshot().status).toBe('stopped');
    expect(registry.actorOf('run-2')).toBeUndefined();
    expect(LeaseRegistry.from(registry.toJSON()).acquire('run-1', 'worker-b', 5)).toBeNull();
  });

  it('an inspector that asks for the actor that is being made gets none yet, and no second one is made', () => {
    const made: string[] = [];
    const registry: LeaseRegistry = newRegistry((event) => {
      if (event.type !== '@xstate.actor' || event.actorRef === undefined) return;
      const { id } = event.actorRef as unknown as { id: string };
      if (id === 'registry') return;
      made.push(id);
      expect(registry.actorOf(id)).toBeUndefined();
    });
    registry.acquire('run-1', 'worker-a', 0);
    expect(made).toEqual(['run-1']);
    expect(registry.actorOf('run-1')?.getSnapshot().value).toBe('held');
  });

  it('a listener finds the actor of the run that it hears of, in the state that it hears of', () => {
    const registry = newRegistry();
    const seen: unknown[] = [];
    const look = ({ lease }: { lease: { runId: string } }) =>
      void seen.push(registry.actorOf(lease.runId)?.getSnapshot().value);
    registry.on('lease.granted', look);
    registry.on('lease.expired', look);
    registry.on('lease.released', look);
    const { leaseId, fencingToken } = registry.acquire('run-1', 'worker-a', 0)!;
    registry.expire(10);
    registry.release(leaseId, fencingToken);
    expect(seen).toEqual(['held', 'expired', 'free']);
  });
});

describe('a registry inside a machine of the user’s own', () => {
  const machine = setup({ actors: { registry: registryLogic } }).createMachine({
    invoke: { src: 'registry', id: 'registry', input: { ttlSeconds: 10 } },
  });

  function startAndAcquire() {
    const parent = createActor(machine).start();
    const registry = parent.getSnapshot().children.registry!;
    registry.send({ type: 'lease.acquire', runId: 'run-1', workerId: 'worker-a', now: 0 });
    return { parent, registry };
  }

  it('A13 is written down with its leases also after its parent was stopped', () => {
    const { parent, registry } = startAndAcquire();
    parent.stop();
    expect(JSON.stringify((registry as Actor<typeof registryLogic>).getPersistedSnapshot())).toContain('worker-a');
  });

  /** What a parent wrote down, with a record that would issue token 1 twice. */
  function contradictory() {
    const { parent } = startAndAcquire();
    return JSON.parse(JSON.stringify(parent.getPersistedSnapshot()).replace('"nextToken":2', '"nextToken":1'));
  }

  it('A2 is not restored from a record that contradicts itself, which is an error of its parent', () => {
    const errors: unknown[] = [];
    const restored = createActor(machine, { snapshot: contradictory() });
    restored.subscribe({ error: (error) => void errors.push(error) });
    restored.start();
    expect(restored.getSnapshot().status).toBe('error');
    expect(errors.map(String)).toEqual([expect.stringContaining('nextToken 1')]);
  });

  it('A2 lets a parent with `onError` go on without the registry that could not be restored', () => {
    const careful = setup({ actors: { registry: registryLogic } }).createMachine({
      initial: 'working',
      states: {
        working: { invoke: { src: 'registry', id: 'registry', input: { ttlSeconds: 10 }, onError: 'broken' } },
        broken: {},
      },
    });
    const restored = createActor(careful, { snapshot: { ...contradictory(), value: 'working' } }).start();
    expect(restored.getSnapshot()).toMatchObject({ status: 'active', value: 'broken', children: {} });
  });

  it('A2 is written down as it was found, where it could not be restored', () => {
    const snapshot = contradictory();
    expect(createActor(machine, { snapshot }).getPersistedSnapshot()).toMatchObject({ children: snapshot.children });
    const alone = createActor(registryLogic, {
      snapshot: snapshot.children.registry.snapshot,
      input: { ttlSeconds: 10 },
    });
    alone.subscribe({ error: () => undefined });
    alone.start();
    expect(alone.getSnapshot().status).toBe('error');
    expect(alone.getPersistedSnapshot()).toEqual(snapshot.children.registry.snapshot);
  });
});
