import type { Lease } from '../src/lease.ts';
import type { LeaseActorRef, LeaseSnapshot } from './lease.logic.ts';
import type { LeaseEvent } from './lease.machine.ts';
import type { ChartLease } from './lease.rules.ts';
import type { Linked, LinkedList } from './linked-list.ts';
import type { LeaseEntry } from './registry.events.ts';

/** A run that has an actor. It stands in the list of its ttl while it is owned and unreported, in the idle one while it is free. */
export class Run implements Linked<Run> {
  list: LinkedList<Run> | null = null;
  before: Run | null = null;
  after: Run | null = null;
  /** Of the latest grant or extension. */
  ttlSeconds = 0;
  readonly runId: string;
  readonly actor: LeaseActorRef;

  constructor(runId: string, actor: LeaseActorRef) {
    this.runId = runId;
    this.actor = actor;
  }

  get lease(): ChartLease | null {
    return this.actor.getSnapshot().context.lease;
  }

  toEntry(): LeaseEntry {
    const { value, context } = this.actor.getSnapshot();
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

  /** Sends the event and answers with the state after it. */
  step(event: LeaseEvent): LeaseSnapshot {
    this.actor.send(event);
    return this.actor.getSnapshot();
  }
}

/** A snapshot that shares nothing with the registry. */
export function toLease(runId: string, { workerId, leaseId, fencingToken, expiresAt }: ChartLease): Lease {
  return { runId, workerId, leaseId, fencingToken, expiresAt };
}
