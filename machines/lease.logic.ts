/** The compiled chart as an actor's logic: what a registry spawns for a run. */
import type { ActorLogic, ActorRef, Snapshot } from 'xstate';
import type { LeaseContext, LeaseEvent } from './lease.machine.ts';
import { leaseMachine } from './lease.machine.ts';
import type { LeaseState } from './lease.table.ts';
import { rowFor } from './lease.table.ts';

/** The state of a lease actor, in the shape of a machine's snapshot. `rule` is the transition that the last event took. */
export type LeaseSnapshot = Snapshot<undefined> & {
  readonly value: LeaseState;
  readonly context: LeaseContext;
  readonly rule: string | undefined;
};

/** The actor of one run. */
export type LeaseActorRef = ActorRef<LeaseSnapshot, LeaseEvent>;

/** Behaves as `leaseMachine` does, event for event, and shows its chart to the tools that draw. */
export const leaseLogic: ActorLogic<LeaseSnapshot, LeaseEvent, { runId: string }> = {
  config: leaseMachine.config,
  getInitialSnapshot: (_scope, { runId }) => leaseSnapshot('free', { runId, lease: null }),
  transition: (snapshot, event: LeaseEvent | { readonly type: 'xstate.stop' }) => {
    if (event.type === 'xstate.stop') return { ...snapshot, status: 'stopped' } as LeaseSnapshot;
    const { value, context } = snapshot;
    const row = rowFor(value, context, event);
    if (row === undefined) return snapshot.rule === undefined ? snapshot : leaseSnapshot(value, context);
    const { target, update, rule } = row;
    return leaseSnapshot(target, update ? { runId: context.runId, lease: update(context, event) } : context, rule);
  },
  getPersistedSnapshot: (snapshot) => snapshot,
};

/** A state of the chart as an actor's snapshot. */
export function leaseSnapshot(value: LeaseState, context: LeaseContext, rule?: string): LeaseSnapshot {
  return { status: 'active', output: undefined, error: undefined, value, context, rule };
}
