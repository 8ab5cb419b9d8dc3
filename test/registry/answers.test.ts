import { afterEach, describe, expect, it, vi } from 'vitest';
import type { RegistryAnswer } from '../../src/index.ts';
import { LeaseRegistry } from '../../src/index.ts';

const newRegistry = () => new LeaseRegistry({ ttlSeconds: 10 });
const acquire = { type: 'lease.acquire', runId: 'run-1', workerId: 'worker-a', now: 0 } as const;

afterEach(() => {
  vi.restoreAllMocks();
});

describe('the answers of a registry', () => {
  it('A17 a call gets its own answer, whatever a subscriber of the actor sends meanwhile', () => {
    const registry = newRegistry();
    const told: string[] = [];
    registry.on('lease.granted', ({ lease }) => void told.push(lease.leaseId));
    registry.actor.subscribe(({ answer }) => {
      if (answer?.type !== 'lease.lapsed') registry.actor.send({ type: 'lease.expire', now: 0 });
    });
    const lease = registry.acquire('run-1', 'worker-a', 0);
    expect(lease).toEqual(registry.get('run-1'));
    expect(lease?.fencingToken).toBe(1);
    expect(told).toEqual(['run-1:worker-a:1']);
    expect(registry.heartbeat('run-1:worker-a:1', 1, 5)).toBe(true);
    expect(registry.validate('run-1', 'run-1:worker-a:1', 1, 6)).toBe(true);
    expect(registry.release('run-1:worker-a:1', 1)).toBe(true);
  });

  it.each([{}, null, 5, 'worker-a', { send: 'no function' }])(
    'A17 a call with a `replyTo` of %o is rejected, changes nothing and stops nothing',
    (replyTo) => {
      vi.spyOn(process, 'emitWarning').mockReturnValue();
      const registry = newRegistry();
      registry.actor.send({ ...acquire, replyTo: replyTo as never });
      expect(registry.actor.getSnapshot()).toMatchObject({ status: 'active', answer: { type: 'lease.rejected' } });
      expect(registry.get('run-1')).toBeNull();
      expect(registry.acquire('run-1', 'worker-b', 0)?.fencingToken).toBe(1);
    },
  );

  it('A17 a `replyTo` that throws is reported, stops nothing, and takes no answer from anybody else', () => {
    const warning = vi.spyOn(process, 'emitWarning').mockReturnValue();
    const registry = newRegistry();
    const answers: RegistryAnswer[] = [];
    const replyTo = {
      send: () => {
        throw new Error('out of order');
      },
    };
    registry.actor.send({ ...acquire, replyTo });
    registry.actor.send({ ...acquire, now: Number.NaN, replyTo });
    expect(warning.mock.calls).toEqual(
      [1, 2].map(() => [expect.stringContaining('out of order'), 'LessorListenerWarning']),
    );
    registry.actor.send({ ...acquire, now: 5, replyTo: { send: (answer) => void answers.push(answer) } });
    expect(answers).toMatchObject([{ type: 'lease.refused' }]);
    expect(registry.heartbeat('run-1:worker-a:1', 1, 6)).toBe(true);
  });

  it('A11 an acquisition id that is no string is rejected: null is not the same acquisition as null', () => {
    const registry = newRegistry();
    const claim = { leaseId: 'run-1:worker-a:1', fencingToken: 1 };
    const types: string[] = [];
    const call = (event: object) =>
      registry.actor.send({
        ...event,
        replyTo: { send: ({ type }: RegistryAnswer) => void types.push(type) },
      } as never);
    for (const acquisitionId of [null, 7, {}]) {
      call({ ...acquire, acquisitionId });
      call({ type: 'lease.heartbeat', ...claim, acquisitionId, now: 1 });
      call({ type: 'lease.validate', runId: 'run-1', ...claim, acquisitionId, now: 1 });
      call({ type: 'lease.release', ...claim, acquisitionId });
    }
    expect(types).toEqual(Array.from({ length: 12 }, () => 'lease.rejected'));
    expect(registry.toJSON().leases).toEqual([]);
    call({ ...acquire, acquisitionId: undefined });
    call({ ...acquire, acquisitionId: undefined, now: 1 });
    expect(types.slice(12)).toEqual(['lease.granted', 'lease.refused']);
    expect(LeaseRegistry.from(JSON.parse(JSON.stringify(registry))).get('run-1')).toEqual(registry.get('run-1'));
  });
});
