import type { Lease } from '../src/lease.ts';
import type { LeaseActorRef, LeaseSnapshot } from './lease.logic.ts';
import { leaseLogic, leaseSnapshot } from './lease.logic.ts';
import type { LeaseContext, LeaseEvent } from './lease.machine.ts';
import type { ChartLease } from './lease.rules.ts';
import type { LeaseState } from './lease.table.ts';
import { rowFor } from './lease.table.ts';
import type { Linked, LinkedList } from './linked-list.ts';
import type { LeaseEntry } from './registry.events.ts';

/**
 * A run and the state of its chart. It stands in the list of its ttl while it is owned and unreported, in the idle one
 * while it is free.
 */
export class Run implements Linked<Run>, LeaseContext {
  list: LinkedList<Run> | null = null;
  before: Run | null = null;
  after: Run | null = null;
  /** Of the latest grant or extension. */
  ttlSeconds = 0;
  readonly runId: string;
  lease: ChartLease | null;
  /** Shows the run to whoever looks. It decides nothing. */
  actor: LeaseActorRef | undefined;
  #value: LeaseState;
  #rule: string | undefined;

  constructor(runId: string, value: LeaseState, lease: ChartLease | null) {
    this.runId = runId;
    this.lease = lease;
    this.actor = undefined;
    this.#value = value;
    this.#rule = undefined;
  }

  /** For the actor of this run. An event that it gets from anybody but the registry changes nothing. */
  get logic(): typeof leaseLogic {
    return {
      ...leaseLogic,
      getInitialSnapshot: () => this.#snapshot(),
      transition: (snapshot, event, scope) =>
        (event as { type: string }).type === 'xstate.stop'
          ? leaseLogic.transition(snapshot, event, scope)
          : this.#snapshot(),
    };
  }

  toEntry(): LeaseEntry {
    const { acquisitionId, ...lease } = this.lease!;
    return {
      ...lease,
      runId: this.runId,
      ...(acquisitionId !== undefined && { acquisitionId }),
      state: this.#value === 'expired' ? 'expired' : 'held',
      ttlSeconds: this.ttlSeconds,
      reported: this.list === null,
    };
  }

  /** Lets the chart take the event, and tells whether it took a transition. */
  step(event: LeaseEvent): boolean {
    const row = rowFor(this.#value, this, event);
    this.#rule = row?.rule;
    if (row !== undefined) {
      this.#value = row.target;
      if (row.update !== undefined) this.lease = row.update(this, event);
    }
    this.actor?.send(event);
    return row !== undefined;
  }

  #snapshot(): LeaseSnapshot {
    return leaseSnapshot(this.#value, { runId: this.runId, lease: this.lease }, this.#rule);
  }
}

/** A snapshot that shares nothing with the registry. */
export function toLease(runId: string, { workerId, leaseId, fencingToken, expiresAt }: ChartLease): Lease {
  return { runId, workerId, leaseId, fencingToken, expiresAt };
}
