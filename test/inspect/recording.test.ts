import { describe, expect, it } from 'vitest';
import type { InspectionEvent } from 'xstate';
import { LeaseRegistry } from '../../src/index.ts';

/** The actor of an inspection record, as far as the Stately inspector reads it. */
interface Seen {
  readonly id: string;
  readonly sessionId: string;
  readonly _parent?: { readonly sessionId: string };
  readonly logic: {
    readonly config: { readonly id?: string; readonly states?: Record<string, { readonly on?: object }> };
  };
}

function record(): { records: InspectionEvent[]; registry: LeaseRegistry } {
  const records: InspectionEvent[] = [];
  const registry = new LeaseRegistry({ ttlSeconds: 10, inspect: (event) => void records.push(event) });
  return { records, registry };
}

const seen = (event: InspectionEvent) => event.actorRef as unknown as Seen;

describe('a recorded inspection of a registry', () => {
  it('has an actor record of the registry and of each lease, with parent and definition', () => {
    const { records, registry } = record();
    registry.acquire('run-1', 'worker-a', 0);
    registry.acquire('run-2', 'worker-b', 1);
    const actors = records.filter(({ type }) => type === '@xstate.actor').map(seen);
    const [root, ...leases] = actors;
    expect(actors.map(({ id }) => id)).toEqual(['registry', 'run-1', 'run-2']);
    expect(root!.logic.config.id).toBe('registry');
    for (const lease of leases) {
      expect(lease._parent?.sessionId).toBe(root!.sessionId);
      expect(Object.keys(lease.logic.config.states!)).toEqual(['free', 'held', 'expired']);
      const definition = JSON.stringify(lease.logic.config);
      for (const guard of ['isExpired', 'isCurrent', 'mayExtend']) expect(definition).toContain(`"guard":"${guard}"`);
    }
  });

  it('has the events of a take-over and the snapshots after them', () => {
    const { records, registry } = record();
    registry.acquire('run-1', 'worker-a', 0);
    registry.acquire('run-1', 'worker-b', 10);
    const story = records.flatMap((event) => {
      if (event.type === '@xstate.event') return [`${seen(event).id} <- ${event.event.type}`];
      if (event.type !== '@xstate.snapshot' || seen(event).id !== 'run-1') return [];
      const { value, context } = event.snapshot as unknown as {
        value: string;
        context: { lease: { fencingToken: number } };
      };
      return [`${value} ${context.lease?.fencingToken ?? '-'}`];
    });
    expect(story.filter((line) => !line.includes('xstate.init'))).toEqual([
      'registry <- lease.acquire',
      'free -',
      'run-1 <- acquire',
      'held 1',
      'registry <- lease.acquire',
      'run-1 <- acquire',
      'held 2',
    ]);
  });

  it('is plain data in JSON, and small: no record writes down every run', () => {
    const { records, registry } = record();
    for (let index = 0; index < 100; index += 1) registry.acquire(`run-${index}`, 'worker-a', 0);
    const last = records.findLast((event) => event.type === '@xstate.snapshot' && seen(event).id === 'registry');
    expect(last?.type).toBe('@xstate.snapshot');
    const text = JSON.stringify(last?.type === '@xstate.snapshot' ? last.snapshot : null);
    expect(JSON.parse(text)).toMatchObject({
      status: 'active',
      context: { nextToken: 101, latestNow: 0, leases: 100 },
    });
    expect(text.length).toBeLessThan(500);
  });
});
