import type { Lease } from '../src/lease.ts';
import type { LeaseActorRef, LeaseSnapshot } from './lease.logic.ts';
import { leaseSnapshot } from './lease.logic.ts';
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
  /** From the moment it is spawned on, the actor keeps the state. */
  actor: LeaseActorRef | undefined;
  #value: LeaseState;
  #lease: ChartLease | null;

  constructor(runId: string, value: LeaseState, lease: ChartLease | null) {
    this.runId = runId;
    this.actor = undefined;
    this.#value = value;
    this.#lease = lease;
  }

  get lease(): ChartLease | null {
    return this.actor === undefined ? this.#lease : this.actor.getSnapshot().context.lease;
  }

  get snapshot(): LeaseSnapshot {
    if (this.actor !== undefined) return this.actor.getSnapshot();
    return leaseSnapshot(this.#value, { runId: this.runId, lease: this.#lease });
  }

  toEntry(): LeaseEntry {
    const { value, context } = this.snapshot;
    const { acquisitionId, ...lease } = context.lease!;
    return {
      ...lease,
      runId: this.runId,
      ...(acquisitionId !== undefined && { acquisitionId }),
      state: value === 'expired' ? 'expired' : 'held',
      ttlSeconds: this.ttlSeconds,
      reported: this.list === null,
    };
  }

  /** Lets the chart take the event, and tells whether it took a transition. */
  step(event: LeaseEvent): boolean {
    if (this.actor !== undefined) {
      this.actor.send(event);
      return this.actor.getSnapshot().rule !== undefined;
    }
    const row = rowFor(this.#value, this, event);
    if (row === undefined) return false;
    this.#value = row.target;
    if (row.update !== undefined) this.#lease = row.update(this, event);
    return true;
  }
}

/** A snapshot that shares nothing with the registry. */
export function toLease(runId: string, { workerId, leaseId, fencingToken, expiresAt }: ChartLease): Lease {
  return { runId, workerId, leaseId, fencingToken, expiresAt };
}
