import { describe, expect, it } from 'vitest';
import { isExpired } from '../../machines/lease.rules.ts';
import type { LeaseContext, LeaseEvent } from '../../machines/lease.machine.ts';
import type { LeaseState } from '../../machines/lease.table.ts';
import { rowFor } from '../../machines/lease.table.ts';
import { EVENTS, everyStep } from './lease-walk.ts';

describe('the compiled table', () => {
  it('A16 agrees with the machine on every reachable state and event, value and context', () => {
    const steps = everyStep();
    expect({
      states: steps.length / EVENTS.length,
      events: EVENTS.length,
      steps: steps.length,
    }).toMatchInlineSnapshot(`
      {
        "events": 208,
        "states": 73,
        "steps": 15184,
      }
    `);
    const different = steps.filter(({ snapshot, event, after }) => {
      const mine = tableStep(snapshot.value, snapshot.context, event);
      return JSON.stringify(mine) !== JSON.stringify({ value: after.value, context: after.context });
    });
    expect(different).toEqual([]);
  });

  it('A16 answers alike whether the chart has noticed the expiry or not: (held, past expiry) and (expired)', () => {
    let compared = 0;
    for (const { snapshot, event } of everyStep()) {
      const { lease } = snapshot.context;
      if (snapshot.value !== 'held' || !('now' in event) || !isExpired(lease!, event.now)) continue;
      const held = tableStep('held', snapshot.context, event);
      const expired = tableStep('expired', snapshot.context, event);
      expect(held).toEqual(expired);
      compared += 1;
    }
    expect(compared).toBeGreaterThan(1_000);
  });

  it('A16 a release is answered alike in held and in expired', () => {
    for (const { snapshot, event } of everyStep()) {
      if (snapshot.value !== 'held' || event.type !== 'release') continue;
      const { context } = tableStep('held', snapshot.context, event);
      expect(tableStep('expired', snapshot.context, event).context).toEqual(context);
    }
  });
});

function tableStep(value: LeaseState, context: LeaseContext, event: LeaseEvent) {
  const row = rowFor(value, context, event);
  const lease = row?.update ? row.update(context, event) : context.lease;
  return { value: row?.target ?? value, context: { runId: context.runId, lease } };
}
