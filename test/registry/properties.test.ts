import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Lease } from '../../src/index.ts';
import { LeaseRegistry } from '../../src/index.ts';

const TTL = 10;
const JUST_BELOW_TTL = 10 - 2 ** -49;

function newRegistry(options: Partial<ConstructorParameters<typeof LeaseRegistry>[0]> = {}): LeaseRegistry {
  return new LeaseRegistry({ ttlSeconds: TTL, ...options });
}

/** Everything that a later call could show. */
function stateOf(registry: LeaseRegistry): string {
  return JSON.stringify(registry);
}

function acquire(registry: LeaseRegistry, runId: string, workerId: string, now: number): Lease {
  const lease = registry.acquire(runId, workerId, now);
  if (lease === null) throw new Error(`${runId} is held at ${now}`);
  return lease;
}

const heartbeat = (registry: LeaseRegistry, lease: Lease, now: number) =>
  registry.heartbeat(lease.leaseId, lease.fencingToken, now);
const validate = (registry: LeaseRegistry, lease: Lease, now: number) =>
  registry.validate(lease.runId, lease.leaseId, lease.fencingToken, now);
const release = (registry: LeaseRegistry, lease: Lease) => registry.release(lease.leaseId, lease.fencingToken);

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe('LeaseRegistry', () => {
  it('A1 at most one lease per run is current', () => {
    const registry = newRegistry();
    for (const now of [0, 5, 10, 15, 20]) {
      for (const workerId of ['worker-a', 'worker-b']) registry.acquire('run-1', workerId, now);
      expect(registry.leases().map(({ runId }) => runId)).toEqual(['run-1']);
    }
  });

  it('A2 tokens count the grants of the whole registry, across release, expiry, take-over and a way through JSON', () => {
    let registry = newRegistry();
    expect(acquire(registry, 'run-1', 'worker-a', 0).fencingToken).toBe(1);
    expect(registry.acquire('run-1', 'worker-b', 1)).toBeNull();
    const second = acquire(registry, 'run-2', 'worker-a', 1);
    expect(second.fencingToken).toBe(2);
    release(registry, second);
    expect(acquire(registry, 'run-1', 'worker-b', 10).fencingToken).toBe(3);
    registry = LeaseRegistry.from(JSON.parse(JSON.stringify(registry)));
    expect(acquire(registry, 'run-2', 'worker-a', 10).fencingToken).toBe(4);
  });

  it('A3 a refused call changes nothing that a later call could show', () => {
    const registry = newRegistry();
    const late = acquire(registry, 'run-1', 'worker-a', 0);
    const lease = acquire(registry, 'run-1', 'worker-b', 10);
    const before = stateOf(registry);
    expect(registry.acquire('run-1', 'worker-a', 10)).toBeNull();
    expect(heartbeat(registry, late, 10)).toBe(false);
    expect(validate(registry, late, 10)).toBe(false);
    expect(release(registry, late)).toBe(false);
    expect(registry.heartbeat(lease.leaseId, 1, 10)).toBe(false);
    expect(registry.release('another', lease.fencingToken)).toBe(false);
    expect(registry.release(lease.leaseId, 99)).toBe(false);
    expect(stateOf(registry)).toBe(before);
  });

  it('A4 just below expiry the lease is live for every call, and at expiry for none', () => {
    const before = newRegistry();
    const live = acquire(before, 'run-1', 'worker-a', 0);
    expect(before.acquire('run-1', 'worker-b', JUST_BELOW_TTL)).toBeNull();
    expect(validate(before, live, JUST_BELOW_TTL)).toBe(true);
    expect(before.expire(JUST_BELOW_TTL)).toEqual([]);
    expect(heartbeat(before, live, JUST_BELOW_TTL)).toBe(true);

    const at = newRegistry();
    const expired = acquire(at, 'run-1', 'worker-a', 0);
    expect(heartbeat(at, expired, TTL)).toBe(false);
    expect(validate(at, expired, TTL)).toBe(false);
    expect(at.expire(TTL)).toEqual([expired]);
    expect(at.get('run-1')).toEqual(expired);
    expect(at.actorOf('run-1')?.getSnapshot().value).toBe('expired');
    const copy = LeaseRegistry.from(at.toJSON());
    expect(release(copy, expired)).toBe(true);
    expect(at.acquire('run-1', 'worker-b', TTL)?.fencingToken).toBe(2);
  });

  it('A5 a run changes its worker only when the former lease has expired or was released', () => {
    const registry = newRegistry();
    const first = acquire(registry, 'run-1', 'worker-a', 0);
    expect(heartbeat(registry, first, 4)).toBe(true);
    for (const now of [4, 10, 13.9]) expect(registry.acquire('run-1', 'worker-b', now)).toBeNull();
    expect(registry.acquire('run-1', 'worker-b', 14)).not.toBeNull();
  });

  it('A6 a heartbeat sets expiresAt to now + ttlSeconds and nothing else, and never revives an expired lease', () => {
    const registry = newRegistry();
    const lease = acquire(registry, 'run-1', 'worker-a', 0);
    expect(heartbeat(registry, lease, 4)).toBe(true);
    expect(registry.get('run-1')).toEqual({ ...lease, expiresAt: 14 });
    for (const now of [14, 14, 15]) expect(heartbeat(registry, lease, now)).toBe(false);
    expect(validate(registry, lease, 15)).toBe(false);
  });

  it('A7 a release succeeds once, past expiry too, while the lease is current', () => {
    const registry = newRegistry();
    const lease = acquire(registry, 'run-1', 'worker-a', 0);
    expect(validate(registry, lease, 50)).toBe(false);
    expect(release(registry, lease)).toBe(true);
    expect(release(registry, lease)).toBe(false);
    expect(registry.get('run-1')).toBeNull();
    expect(validate(registry, lease, 50)).toBe(false);
  });

  it('A8 lease id and token must both match, and be those of the current lease', () => {
    const registry = newRegistry();
    const late = acquire(registry, 'run-1', 'worker-a', 0);
    const other = acquire(registry, 'run-2', 'worker-a', 0);
    const lease = acquire(registry, 'run-1', 'worker-b', 10);
    const claims: [string, number][] = [
      [late.leaseId, late.fencingToken],
      [late.leaseId, lease.fencingToken],
      [lease.leaseId, late.fencingToken],
      [lease.leaseId, other.fencingToken],
      [other.leaseId, lease.fencingToken],
      [lease.leaseId, Number.MAX_SAFE_INTEGER],
      [lease.leaseId.slice(0, -1), lease.fencingToken],
    ];
    for (const [leaseId, fencingToken] of claims) {
      expect(registry.heartbeat(leaseId, fencingToken, 10)).toBe(false);
      expect(registry.validate('run-1', leaseId, fencingToken, 10)).toBe(false);
      expect(registry.release(leaseId, fencingToken)).toBe(false);
    }
    expect(registry.validate('run-2', lease.leaseId, lease.fencingToken, 10)).toBe(false);
    expect(validate(registry, lease, 10)).toBe(true);
  });

  it('A9 a re-acquire by the live lease’s own worker is refused, or extends it with the same token where that was asked for', () => {
    expect(acquire(newRegistry(), 'run-1', 'worker-a', 0)).not.toBeNull();
    const refusing = newRegistry();
    acquire(refusing, 'run-1', 'worker-a', 0);
    expect(refusing.acquire('run-1', 'worker-a', 5)).toBeNull();
    expect(refusing.acquire('run-1', 'worker-a', 10)?.fencingToken).toBe(2);

    const extending = newRegistry({ reacquire: 'extend' });
    const lease = acquire(extending, 'run-1', 'worker-a', 0);
    expect(extending.acquire('run-1', 'worker-a', 5)).toEqual({ ...lease, expiresAt: 15 });
    expect(extending.acquire('run-1', 'worker-b', 5)).toBeNull();
    expect(extending.acquire('run-1', 'worker-a', 15)?.fencingToken).toBe(2);
  });

  it('A10 a call on one run leaves every other run as it was', () => {
    const registry = newRegistry();
    const bystander = acquire(registry, 'run-2', 'worker-a', 0);
    const lease = acquire(registry, 'run-1', 'worker-a', 1);
    heartbeat(registry, lease, 2);
    release(registry, lease);
    acquire(registry, 'run-1', 'worker-b', 3);
    expect(registry.get('run-2')).toEqual(bystander);
  });

  it('A11 a time that goes back counts as the latest seen: nothing un-expires and no expiry shrinks', () => {
    const registry = newRegistry();
    const lease = acquire(registry, 'run-1', 'worker-a', -5);
    expect(lease.expiresAt).toBe(5);
    expect(validate(registry, lease, 4)).toBe(true);
    expect(heartbeat(registry, lease, -5)).toBe(true);
    expect(registry.get('run-1')?.expiresAt).toBe(14);
    expect(validate(registry, lease, 14)).toBe(false);
    expect(validate(registry, lease, 0)).toBe(false);
    expect(heartbeat(registry, lease, 0)).toBe(false);
    expect(registry.acquire('run-2', 'worker-a', 0)?.expiresAt).toBe(24);
  });

  it('A12 the same calls give the same answers: no clock, no randomness, no timer', () => {
    vi.useFakeTimers();
    const forbidden = () => {
      throw new Error('the registry looked at the world');
    };
    vi.spyOn(Date, 'now').mockImplementation(forbidden);
    vi.spyOn(performance, 'now').mockImplementation(forbidden);
    vi.spyOn(Math, 'random').mockImplementation(forbidden);
    const play = () => {
      const registry = newRegistry();
      const lease = acquire(registry, 'run-1', 'worker-a', 0);
      heartbeat(registry, lease, 3);
      registry.acquire('run-1', 'worker-b', 13);
      registry.expire(50);
      return stateOf(registry);
    };
    expect(play()).toBe(play());
    expect(vi.getTimerCount()).toBe(0);
  });

  it('A13 a registry restored from its JSON answers every continuation as the original does', () => {
    const original = newRegistry();
    const late = acquire(original, 'expired', 'worker-a', 0);
    acquire(original, 'held', 'worker-a', 3);
    expect(heartbeat(original, late, 10)).toBe(false);
    release(original, acquire(original, 'free', 'worker-a', 10));
    const restored = LeaseRegistry.from(JSON.parse(JSON.stringify(original)));
    const play = (registry: LeaseRegistry) => [
      stateOf(registry),
      registry.leases(),
      registry.acquire('held', 'worker-b', 0),
      registry.expire(10),
      registry.expire(10),
      heartbeat(registry, late, 10),
      registry.acquire('expired', 'worker-b', 11),
      registry.acquire('free', 'worker-b', 11),
      registry.expire(30),
    ];
    expect(play(restored)).toEqual(play(original));
  });

  it('A14 changing what a caller holds changes nothing in the registry, and a heartbeat does not show in an older snapshot', () => {
    const registry = newRegistry();
    const lease = acquire(registry, 'run-1', 'worker-a', 0);
    const kept = { ...lease };
    heartbeat(registry, lease, 5);
    expect(lease.expiresAt).toBe(10);
    registry.on('lease.released', ({ lease: told }) => Object.assign(told, { expiresAt: 1e9 }));
    for (const handedOut of [lease, registry.get('run-1')!, registry.leases()[0]!]) {
      Object.assign(handedOut, { runId: 'x', workerId: 'x', leaseId: 'x', fencingToken: 99, expiresAt: 1e9 });
    }
    expect(registry.get('run-1')).toEqual({ ...kept, expiresAt: 15 });
    expect(release(registry, kept)).toBe(true);
  });

  it('A15 no lease is born expired, and no token follows 2^53 - 1', () => {
    const registry = newRegistry();
    expect(() => registry.acquire('run-1', 'worker-a', 2 ** 60)).toThrow(RangeError);
    expect(() => registry.acquire('run-1', 'worker-a', Number.MAX_VALUE)).toThrow(RangeError);
    expect(registry.acquire('run-1', 'worker-a', 0)?.fencingToken).toBe(1);

    const nearTheEnd = LeaseRegistry.from({ ...newRegistry().toJSON(), nextToken: Number.MAX_SAFE_INTEGER });
    const last = acquire(nearTheEnd, 'run-1', 'worker-a', 0);
    expect(last.fencingToken).toBe(Number.MAX_SAFE_INTEGER);
    expect(() => nearTheEnd.acquire('run-2', 'worker-a', 0)).toThrow(RangeError);
    expect(nearTheEnd.acquire('run-1', 'worker-b', 0)).toBeNull();
    const again = LeaseRegistry.from(JSON.parse(JSON.stringify(nearTheEnd)));
    expect(() => again.acquire('run-1', 'worker-b', 10)).toThrow('No fencing token is left');
    expect(heartbeat(again, last, 9)).toBe(false);
  });

  it('A16 a run past its expiry answers every call alike, whether its chart has noticed or not', () => {
    const play = (notice: boolean) => {
      const registry = newRegistry();
      const lease = acquire(registry, 'run-1', 'worker-a', 0);
      if (notice) expect(heartbeat(registry, lease, 10)).toBe(false);
      expect(registry.actorOf('run-1')?.getSnapshot().value).toBe(notice ? 'expired' : 'held');
      const json = registry.toJSON();
      const ask = <Answer>(call: (copy: LeaseRegistry) => Answer) => call(LeaseRegistry.from(json));
      return [
        ask((copy) => validate(copy, lease, 10)),
        ask((copy) => heartbeat(copy, lease, 10)),
        ask((copy) => release(copy, lease)),
        ask((copy) => copy.acquire('run-1', 'worker-a', 10)),
        ask((copy) => copy.acquire('run-1', 'worker-b', 10)),
        ask((copy) => copy.get('run-1')),
        ask((copy) => copy.leases()),
        ask((copy) => [copy.expire(10), copy.expire(10)]),
      ];
    };
    expect(play(true)).toEqual(play(false));
  });

  it('A17 each token begins once and ends at most once in the events', () => {
    const registry = newRegistry();
    const told: string[] = [];
    for (const type of [
      'lease.granted',
      'lease.renewed',
      'lease.expired',
      'lease.released',
      'lease.refused',
    ] as const) {
      registry.on(type, ({ lease }) => told.push(`${type} ${lease.fencingToken}`));
    }
    registry.on('lease.takenOver', ({ previous, lease }) =>
      told.push(`lease.takenOver ${previous.fencingToken} by ${lease.fencingToken}`),
    );
    const first = acquire(registry, 'run-1', 'worker-a', 0);
    heartbeat(registry, first, 1);
    registry.acquire('run-1', 'worker-b', 2);
    heartbeat(registry, first, 11);
    registry.expire(12);
    const second = acquire(registry, 'run-1', 'worker-b', 12);
    release(registry, first);
    release(registry, second);
    release(registry, second);
    expect(told).toEqual([
      'lease.granted 1',
      'lease.renewed 1',
      'lease.refused 1',
      'lease.expired 1',
      'lease.takenOver 1 by 2',
      'lease.granted 2',
      'lease.released 2',
    ]);
  });

  it('A17 expire tells of each lease that lapsed once, and of none that a heartbeat has told of', () => {
    const registry = newRegistry();
    const told: number[] = [];
    registry.on('lease.expired', ({ lease }) => told.push(lease.fencingToken));
    const first = acquire(registry, 'run-1', 'worker-a', 0);
    const second = acquire(registry, 'run-2', 'worker-a', 0);
    heartbeat(registry, first, 11);
    registry.expire(12);
    registry.expire(13);
    expect(told).toEqual([first.fencingToken, second.fencingToken]);
  });

  it('A17 a listener may call the registry, and one that throws is reported and stops nothing', () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const registry = newRegistry();
    registry.on('lease.granted', () => {
      throw new Error('a listener’s own fault');
    });
    registry.on('lease.released', ({ lease }) => {
      registry.acquire(lease.runId, 'worker-b', 0);
    });
    expect(release(registry, acquire(registry, 'run-1', 'worker-a', 0))).toBe(true);
    expect(registry.get('run-1')?.workerId).toBe('worker-b');
    expect(warn).toHaveBeenCalledTimes(2);
    expect(warn.mock.calls[0]?.[0]).toContain('a listener’s own fault');
  });

  it('A17 a subscriber of its own actors that calls the registry gets an error, and the registry goes on', async () => {
    const registry = newRegistry();
    const caught: unknown[] = [];
    registry.actor.subscribe(() => {
      try {
        registry.acquire('run-2', 'worker-a', 0);
      } catch (error) {
        caught.push(error);
      }
    });
    const lease = acquire(registry, 'run-1', 'worker-a', 0);
    expect(String(caught[0])).toContain('Listeners of `on` may');
    expect(registry.get('run-2')).toBeNull();
    expect(heartbeat(registry, lease, 1)).toBe(true);
  });

  it('A17 a throwing inspector is reported and stops nothing', () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const registry = newRegistry({
      inspect: () => {
        throw new Error('no screen');
      },
    });
    expect(release(registry, acquire(registry, 'run-1', 'worker-a', 0))).toBe(true);
    expect(warn).toHaveBeenCalled();
  });

  it('A16 a lease actor is spawned when it is asked for, in the state that its chart has reached, and goes on from there', () => {
    const registry = newRegistry();
    const lease = acquire(registry, 'run-1', 'worker-a', 0);
    heartbeat(registry, lease, 5);
    const actor = registry.actorOf('run-1')!;
    expect(actor.getSnapshot()).toMatchObject({
      value: 'held',
      context: { lease: { fencingToken: 1, expiresAt: 15 } },
    });
    expect(registry.actorOf('run-1')).toBe(actor);
    registry.expire(15);
    expect(actor.getSnapshot().value).toBe('expired');
    acquire(registry, 'run-1', 'worker-b', 15);
    expect(actor.getSnapshot()).toMatchObject({ value: 'held', context: { lease: { fencingToken: 2 } } });
    expect(registry.get('run-1')?.workerId).toBe('worker-b');
    expect(LeaseRegistry.from(registry.toJSON()).actorOf('run-1')!.getSnapshot().value).toBe('held');
    expect(registry.actorOf('run-2')).toBeUndefined();
  });

  it('A18 runs that were acquired and released leave no actor behind, beyond a bounded number', () => {
    const registry = newRegistry();
    for (let index = 0; index < 5000; index += 1) release(registry, acquire(registry, `run-${index}`, 'worker-a', 0));
    const kept = Array.from({ length: 5000 }, (_, index) => registry.actorOf(`run-${index}`)).filter(Boolean);
    expect(kept.length).toBe(1024);
    expect(registry.leases()).toEqual([]);
  });

  it('A18 expire costs by what lapsed, not by what is held', () => {
    const registry = newRegistry();
    for (let index = 0; index < 1000; index += 1) acquire(registry, `run-${index}`, 'worker-a', 0);
    for (const lease of registry.leases().slice(3)) heartbeat(registry, lease, 5);
    let asked = 0;
    for (let index = 0; index < 1000; index += 1) registry.actorOf(`run-${index}`)!.subscribe(() => (asked += 1));
    expect(registry.expire(10).map(({ runId }) => runId)).toEqual(['run-0', 'run-1', 'run-2']);
    expect(asked).toBe(3);
    expect(registry.expire(10)).toEqual([]);
  });

  it('A19 a run whose worker stopped can be acquired at its expiry, and a released one at once', () => {
    const registry = newRegistry();
    acquire(registry, 'run-1', 'worker-a', 0);
    expect(registry.acquire('run-1', 'worker-b', 1e6)).not.toBeNull();
    const lease = acquire(registry, 'run-2', 'worker-a', 1e6);
    release(registry, lease);
    expect(registry.acquire('run-2', 'worker-b', 1e6)).not.toBeNull();
  });

  it('a stopped registry says so instead of answering', () => {
    const registry = newRegistry();
    (registry.actor as unknown as { stop(): void }).stop();
    expect(() => registry.acquire('run-1', 'worker-a', 0)).toThrow('stopped');
  });
});
