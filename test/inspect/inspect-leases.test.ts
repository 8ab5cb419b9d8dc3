import { describe, expect, it } from 'vitest';
import type { InspectionEvent } from 'xstate';
import type { InspectLeasesOptions } from '../../src/index.ts';
import { inspectLeases, LeaseRegistry } from '../../src/index.ts';

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

  it('refuses options that make no sense', () => {
    expect(() => inspectLeases(() => undefined, { limit: 0 })).toThrow('`limit`');
    expect(() => inspectLeases(() => undefined, { only: 'nightly' as never })).toThrow('`only`');
    expect(() => inspectLeases(() => undefined, null as never)).toThrow('`options`');
  });
});
