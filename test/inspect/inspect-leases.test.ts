import { describe, expect, it, vi } from 'vitest';
import type { InspectionEvent } from 'xstate';
import type { InspectLeasesOptions } from '../../src/index.ts';
import { inspectLeases, LeaseManager, LeaseRegistry, MemoryStore } from '../../src/index.ts';

function record(options?: InspectLeasesOptions) {
  const lines: string[] = [];
  const line = (event: InspectionEvent) => {
    const { id } = event.actorRef as unknown as { id: string };
    return `${id} ${event.type.slice('@xstate.'.length)}${event.type === '@xstate.event' ? ` ${event.event.type}` : ''}`;
  };
  const registry = new LeaseRegistry({
    ttlSeconds: 10,
    inspect: inspectLeases((event) => lines.push(line(event)), options),
  });
  return { registry, lines };
}

describe('inspectLeases', () => {
  it('shows the chosen runs and the calls that reached them, and nothing of the others', () => {
    const { registry, lines } = record({ only: (runId) => runId.startsWith('nightly') });
    registry.acquire('hourly-1', 'worker-a', 0);
    const before = lines.length;
    const lease = registry.acquire('nightly-1', 'worker-a', 0)!;
    registry.heartbeat('hourly-1:worker-a:1', 1, 5);
    registry.release(lease.leaseId, lease.fencingToken);
    expect(lines.filter((line) => line.includes('hourly'))).toEqual([]);
    expect(lines.slice(before).filter((line) => line.includes('event lease.'))).toEqual([
      'registry event lease.acquire',
      'registry event lease.release',
    ]);
    expect(lines.slice(before).filter((line) => line.startsWith('nightly-1 event'))).toEqual([
      'nightly-1 event xstate.init',
      'nightly-1 event acquire',
      'nightly-1 event release',
    ]);
    expect(lines.filter((line) => line === 'registry snapshot').length).toBe(3);
  });

  it('shows so many runs and no more, and another one once one of them has gone', () => {
    const { registry, lines } = record({ limit: 2 });
    for (const runId of ['run-1', 'run-2', 'run-3']) registry.acquire(runId, 'worker-a', 0);
    const actors = () => lines.filter((line) => line.endsWith(' actor'));
    expect(actors()).toEqual(['registry actor', 'run-1 actor', 'run-2 actor']);
    registry.release('run-1:worker-a:1', 1);
    for (let index = 0; index < 1024; index += 1) {
      const lease = registry.acquire(`short-${index}`, 'worker-a', 0)!;
      registry.release(lease.leaseId, lease.fencingToken);
    }
    expect(registry.actorOf('run-1')).toBeUndefined();
    registry.acquire('run-4', 'worker-a', 0);
    expect(actors()).toHaveLength(4);
  });

  it("shows the chosen runs' keepers by the names of their runs, with what they do, and no other keeper", async () => {
    const events: InspectionEvent[] = [];
    const inspect = inspectLeases((event) => void events.push(event), { limit: 2 });
    await using store = new MemoryStore();
    await using leases = new LeaseManager(store, { ttlSeconds: 10, inspect });
    const runIds = ['run-1', 'run-2', 'run-3'];
    for (const runId of runIds) await leases.acquire(runId, { workerId: 'worker-a' });
    const seen = (event: InspectionEvent) => event.actorRef as unknown as { id: string; _parent?: { id: string } };
    const actors = events.filter(({ type }) => type === '@xstate.actor').map(seen);
    expect(actors.map(({ id, _parent }) => `${_parent?.id ?? ''} ${id}`.trim())).toEqual(
      ['run-1', 'run-2'].flatMap((runId) => [runId, `${runId} ask`]),
    );
    const names = events.map((event) => seen(event)._parent?.id ?? seen(event).id);
    expect(new Set(names)).toEqual(new Set(['run-1', 'run-2']));
    await leases.close();
    expect(events.map(seen).some(({ id }) => id === 'release')).toBe(true);
    // A keeper that has ended makes room for the next.
    await using next = new LeaseManager(store, { ttlSeconds: 10, inspect });
    await next.acquire('run-4', { workerId: 'worker-a' });
    expect(events.map(seen).some(({ id }) => id === 'run-4')).toBe(true);
  });

  it('asks about a run before anything is recorded of it, and its errors stop nothing', () => {
    const asked: string[] = [];
    const only = (runId: string) => {
      asked.push(runId);
      throw new Error('of the filter');
    };
    const { registry, lines } = record({ only });
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    expect(registry.acquire('run-1', 'worker-a', 0)?.fencingToken).toBe(1);
    expect(warned).toHaveBeenCalledOnce();
    warned.mockRestore();
    expect(asked).toEqual(['run-1']);
    expect(lines.filter((line) => line.startsWith('run-1'))).toEqual([]);
  });

  it('errors of the filter stop no keeper', async () => {
    const inspect = inspectLeases(() => undefined, {
      only: () => {
        throw new Error('of the filter');
      },
    });
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    await using store = new MemoryStore({ inspect });
    await using leases = new LeaseManager(store, { ttlSeconds: 10, inspect });
    expect(await leases.hold('run-1', {}, () => 'done')).toBe('done');
    expect(warned).toHaveBeenCalled();
    warned.mockRestore();
  });

  it('refuses options that make no sense', () => {
    expect(() => inspectLeases(() => undefined, { limit: 0 })).toThrow('`limit`');
    expect(() => inspectLeases(() => undefined, { only: 'nightly' as never })).toThrow('`only`');
    expect(() => inspectLeases(() => undefined, null as never)).toThrow('`options`');
  });
});
