/**
 * The registry's runs: a lease actor for each run that is owned, and the counter of tokens. Every call costs the same at
 * any number of runs. Nothing here throws, and nothing reads a clock.
 */
import { createActor } from 'xstate';
import type { AnyActorRef } from 'xstate';
import type { Lease, Reacquire } from '../src/lease.ts';
import type { LeaseActorRef, LeaseSnapshot } from './lease.logic.ts';
import { leaseLogic, leaseSnapshot } from './lease.logic.ts';
import type { Claim } from './lease.rules.ts';
import { isExpired, isLive } from './lease.rules.ts';
import { LinkedList } from './linked-list.ts';
import type {
  AcquireCall,
  ExpireCall,
  HeartbeatCall,
  LeaseEntry,
  RegistryAnswer,
  RegistryRecord,
  ReleaseCall,
  ValidateCall,
} from './registry.events.ts';
import { Run, toLease } from './registry.run.ts';

/** So many free runs keep their actor for the next acquire. */
const IDLE_RUNS = 1024;

/** What the runs need of the actor that they belong to: to be the lease actors' parent, and to stop them. */
export interface RunsOwner {
  readonly self: AnyActorRef;
  stopChild(child: AnyActorRef): void;
}

export class RegistryRuns {
  readonly ttlSeconds: number;
  readonly reacquire: Reacquire;
  nextToken = 1;
  latestNow = Number.NEGATIVE_INFINITY;

  readonly #owner: RunsOwner;
  readonly #runs = new Map<string, Run>();
  readonly #ownedByToken = new Map<number, Run>();
  /** Free runs, the longest free first. */
  readonly #idle = new LinkedList<Run>();
  /** Owned runs that no `expire` has named, by ttl. As `now` never goes back, each list is in order of expiry. */
  readonly #unreported = new Map<number, LinkedList<Run>>();

  constructor(owner: RunsOwner, options: { readonly ttlSeconds: number; readonly reacquire: Reacquire }) {
    this.#owner = owner;
    this.ttlSeconds = options.ttlSeconds;
    this.reacquire = options.reacquire;
  }

  acquire(call: AcquireCall): RegistryAnswer {
    const now = this.#advance(call.now);
    const { runId, workerId, ttlSeconds = this.ttlSeconds } = call;
    const run = this.#runs.get(runId) ?? this.#spawn(runId);
    const before = run.lease;
    if (this.nextToken > Number.MAX_SAFE_INTEGER && (before === null || isExpired(before, now))) {
      return { type: 'lease.exhausted', runId, workerId };
    }
    const { rule, context } = run.step({
      type: 'acquire',
      workerId,
      acquisitionId: call.acquisitionId,
      fencingToken: this.nextToken,
      reacquire: call.reacquire ?? this.reacquire,
      now,
      ttlSeconds,
    });
    const lease = toLease(runId, context.lease!);
    if (rule === undefined) return { type: 'lease.refused', runId, workerId, lease };
    if (before === null || context.lease!.expiresAt !== before.expiresAt) this.#expireAfter(ttlSeconds, run);
    if (lease.fencingToken !== this.nextToken) return { type: 'lease.granted', lease, extended: true, previous: null };
    if (before !== null) this.#ownedByToken.delete(before.fencingToken);
    this.#ownedByToken.set(this.nextToken++, run);
    return { type: 'lease.granted', lease, extended: false, previous: before && toLease(runId, before) };
  }

  heartbeat(call: HeartbeatCall): RegistryAnswer {
    const now = this.#advance(call.now);
    const run = this.#ownedByToken.get(call.fencingToken);
    if (run === undefined) return invalid(call);
    const { leaseId, fencingToken, acquisitionId, ttlSeconds = this.ttlSeconds } = call;
    const before = run.lease!;
    const { rule, context } = run.step({ type: 'heartbeat', leaseId, fencingToken, acquisitionId, now, ttlSeconds });
    const after = context.lease!;
    if (after !== before) {
      if (after.expiresAt !== before.expiresAt) this.#expireAfter(ttlSeconds, run);
      return { type: 'lease.renewed', lease: toLease(run.runId, after) };
    }
    return invalid(call, rule === undefined ? null : toLease(run.runId, after));
  }

  validate(call: ValidateCall): RegistryAnswer {
    const now = this.#advance(call.now);
    const lease = this.#runs.get(call.runId)?.lease;
    const { leaseId, fencingToken } = call;
    return lease && isLive(lease, call, now) ? { type: 'lease.valid', leaseId, fencingToken } : invalid(call);
  }

  release(call: ReleaseCall): RegistryAnswer {
    const run = this.#ownedByToken.get(call.fencingToken);
    if (run === undefined) return invalid(call);
    const { leaseId, fencingToken, acquisitionId } = call;
    const before = run.lease!;
    if (run.step({ type: 'release', leaseId, fencingToken, acquisitionId }).rule === undefined) {
      return invalid(call);
    }
    this.#ownedByToken.delete(fencingToken);
    this.#keepIdle(run);
    return { type: 'lease.released', lease: toLease(run.runId, before) };
  }

  expire(call: ExpireCall): RegistryAnswer {
    const now = this.#advance(call.now);
    const leases: Lease[] = [];
    const expired: Lease[] = [];
    for (const [ttlSeconds, list] of this.#unreported) {
      for (let run = list.first; run !== null && isExpired(run.lease!, now); run = list.first) {
        const lease = toLease(run.runId, run.lease!);
        leases.push(lease);
        if (run.step({ type: 'expire', now }).rule !== undefined) expired.push(lease);
        list.remove(run);
      }
      if (list.size === 0) this.#unreported.delete(ttlSeconds);
    }
    return { type: 'lease.lapsed', leases, expired };
  }

  /** The current lease of the run, as a snapshot. */
  get(runId: string): Lease | null {
    const lease = this.#runs.get(runId)?.lease;
    return lease ? toLease(runId, lease) : null;
  }

  /** The lease actor of the run, while it has one. */
  actorOf(runId: string): LeaseActorRef | undefined {
    return this.#runs.get(runId)?.actor;
  }

  /** All current leases, as snapshots. */
  *leases(): IterableIterator<Lease> {
    for (const run of this.#ownedByToken.values()) yield toLease(run.runId, run.lease!);
  }

  /** So many leases are current. */
  get size(): number {
    return this.#ownedByToken.size;
  }

  /** Shows in no JSON: an inspector that writes down every snapshot would write down every run each time. */
  toJSON(): undefined {
    return undefined;
  }

  toRecord(): RegistryRecord {
    const { ttlSeconds, reacquire, nextToken, latestNow } = this;
    const leases = Array.from(this.#ownedByToken.values(), (run) => run.toEntry());
    return {
      version: 1,
      ttlSeconds,
      reacquire,
      nextToken,
      latestNow: latestNow === Number.NEGATIVE_INFINITY ? null : latestNow,
      leases,
    };
  }

  static fromRecord(owner: RunsOwner, record: RegistryRecord): RegistryRuns {
    const runs = new RegistryRuns(owner, record);
    runs.nextToken = record.nextToken;
    runs.latestNow = record.latestNow ?? Number.NEGATIVE_INFINITY;
    const entries = record.leases.toSorted((one, other) => one.fencingToken - other.fencingToken);
    for (const entry of entries) runs.#restore(entry);
    entries.sort((one, other) => one.expiresAt - other.expiresAt);
    for (const { runId, ttlSeconds, reported } of entries)
      if (!reported) runs.#expireAfter(ttlSeconds, runs.#runs.get(runId)!);
    return runs;
  }

  /** Drops the run and its actor: it has been free for long, or its actor failed. */
  forget(runId: string): void {
    const run = this.#runs.get(runId);
    if (run === undefined) return;
    const { lease } = run;
    if (lease) this.#ownedByToken.delete(lease.fencingToken);
    run.list?.remove(run);
    this.#runs.delete(runId);
    this.#owner.stopChild(run.actor);
  }

  /** Stops every lease actor. */
  stop(): void {
    for (const runId of [...this.#runs.keys()]) this.forget(runId);
  }

  #advance(now: number): number {
    if (now > this.latestNow) this.latestNow = now;
    return this.latestNow;
  }

  /** A run with an actor and without a lease. */
  #spawn(runId: string, snapshot?: LeaseSnapshot): Run {
    const actor = createActor(leaseLogic, {
      id: runId,
      parent: this.#owner.self,
      input: { runId },
      ...(snapshot && { snapshot }),
    });
    const run = new Run(runId, actor.start());
    this.#runs.set(runId, run);
    this.#keepIdle(run);
    return run;
  }

  #keepIdle(run: Run): void {
    this.#idle.append(run);
    if (this.#idle.size > IDLE_RUNS) this.forget(this.#idle.first!.runId);
  }

  #expireAfter(ttlSeconds: number, run: Run): void {
    let list = this.#unreported.get(ttlSeconds);
    if (list === undefined) this.#unreported.set(ttlSeconds, (list = new LinkedList()));
    list.append(run);
    run.ttlSeconds = ttlSeconds;
  }

  #restore(entry: LeaseEntry): void {
    const { runId, workerId, leaseId, fencingToken, expiresAt, acquisitionId, state, ttlSeconds } = entry;
    const lease = { workerId, leaseId, fencingToken, expiresAt, acquisitionId };
    const run = this.#spawn(runId, leaseSnapshot(state, { runId, lease }));
    run.ttlSeconds = ttlSeconds;
    run.list!.remove(run);
    this.#ownedByToken.set(fencingToken, run);
  }
}

function invalid({ leaseId, fencingToken }: Claim, expired: Lease | null = null): RegistryAnswer {
  return { type: 'lease.invalid', leaseId, fencingToken, expired };
}
