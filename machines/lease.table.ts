/**
 * The lease machine's own config, compiled to a table. A `StateMachine` resolves every event anew, at some microseconds
 * each; the registry runs this table instead, at a fraction of that. A test walks both side by side.
 */
import type { LeaseContext, LeaseEvent } from './lease.machine.ts';
import { leaseGuards, leaseMachine, leaseUpdates } from './lease.machine.ts';

export type LeaseState = 'free' | 'held' | 'expired';

/** One transition of the chart, ready to run. */
export interface Row {
  /** Its rule's number, R1 to R9. */
  readonly rule: string;
  readonly target: LeaseState;
  readonly guard: (typeof leaseGuards)[keyof typeof leaseGuards] | undefined;
  readonly update: (typeof leaseUpdates)[keyof typeof leaseUpdates] | undefined;
}

/** What the table reads of a transition in the machine's config. */
interface TransitionConfig {
  readonly target?: LeaseState;
  readonly guard?: keyof typeof leaseGuards;
  readonly actions?: keyof typeof leaseUpdates;
  readonly meta: { readonly rule: string };
}

type EventType = LeaseEvent['type'];
type Table = Readonly<Record<LeaseState, Readonly<Partial<Record<EventType, readonly Row[]>>>>>;

const table = compile(leaseMachine.config.states as Parameters<typeof compile>[0]);

/** The transition that the event takes, or undefined: then nothing changes. An event that the chart does not know changes nothing. */
export function rowFor(state: LeaseState, context: LeaseContext, event: LeaseEvent): Row | undefined {
  for (const row of table[state][event.type] ?? []) {
    if (row.guard === undefined || row.guard(context, event)) return row;
  }
  return undefined;
}

/** A flat machine as rows. What this does not know (nested states, inline functions) fails here, when the module loads. */
function compile(
  states: Record<
    LeaseState,
    { readonly on: Partial<Record<EventType, TransitionConfig | readonly TransitionConfig[]>> }
  >,
): Table {
  const compileState = (state: LeaseState) => {
    const rowsFor = (type: EventType): readonly Row[] =>
      [states[state].on[type] ?? []].flat().map((transition) => compileTransition(state, transition));
    return {
      acquire: rowsFor('acquire'),
      heartbeat: rowsFor('heartbeat'),
      release: rowsFor('release'),
      expire: rowsFor('expire'),
    };
  };
  return { free: compileState('free'), held: compileState('held'), expired: compileState('expired') };
}

function compileTransition(state: LeaseState, { target, guard, actions, meta }: TransitionConfig): Row {
  const row: Row = {
    rule: meta.rule,
    target: target ?? state,
    guard: guard && leaseGuards[guard],
    update: actions && leaseUpdates[actions],
  };
  if ((guard && !row.guard) || (actions && !row.update)) {
    throw new Error(`Rule ${row.rule} of the lease machine names a guard or action that the table does not have`);
  }
  return row;
}
