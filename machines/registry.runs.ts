/**
 * The registry's runs: the chart of each run that is owned, its actor, and the counter of tokens. Every call costs the
 * same at any number of runs. Nothing here throws, and nothing reads a clock.
 */
import { createActor } from 'xstate';
import type { AnyActorRef } from 'xstate';
import type { Lease, Reacquire } from '../src/lease.ts';
import { ExpiryQueue } from './expiry-queue.ts';
import type { LeaseActorRef } from './lease.logic.ts';
import type { ChartLease, Claim } from './lease.rules.ts';
import { isExpired, isLive } from './lease.rules.ts';
import type { LeaseState } from './lease.table.ts';
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
import { TokenTable } from './token-table.ts';

/** So many free runs are kept for the next acquire. */
const IDLE_RUNS = 1024;

/**
 * Whether the run gets its lease actor as soon as it is owned. Otherwise it gets one when somebody asks: an actor takes
 * three times the memory of the run itself, and shows nothing while nobody looks.
 */
export type Watched = (runId: string) => boolean;

/** What the runs need of the actor that they belong to: to be the lease actors' parent, and to stop them. */
export interface RunsOwner {
  readonly self: AnyActorRef;
  stopChild(child: AnyActorRef): void;
}

/** What holds for all runs of a registry. */
export interface RunsOptions {
  readonly ttlSeconds: number;
  readonly reacquire: Reacquire;
  readonly watched: Watched;
}

export class RegistryRuns {
  readonly ttlSeconds: number;
  readonly reacquire: Reacquire;
  nextToken = 1;
  latestNow = Number.NEGATIVE_INFINITY;

  readonly #owner: RunsOwner;
  readonly #watched: Watched;
  readonly #runs = new Map<string, Run>();
  readonly #ownedByToken = new TokenTable<Run>();
  /** Free runs, the longest free first. */
  readonly #idle = new LinkedList<Run>();
  readonly #unreported = new ExpiryQueue();
  /** Runs whose actor is being made: whoever inspects that may ask for it. */
  readonly #spawning = new Set<Run>();
  #stopped = false;

  constructor(owner: RunsOwner, options: RunsOptions) {
    this.#owner = owner;
    this.ttlSeconds = options.ttlSeconds;
    this.reacquire = options.reacquire;
    this.#watched = options.watched;
  }

  acquire(call: AcquireCall): RegistryAnswer {
    const now = this.#advance(call.now);
    const { runId, workerId, ttlSeconds = this.ttlSeconds } = call;
    const run = this.#runs.get(runId) ?? this.#add(runId, 'free', null);
    const before = run.lease;
    if (this.nextToken > Number.MAX_SAFE_INTEGER && (before === null || isExpired(before, now))) {
      return { type: 'lease.exhausted', runId, workerId };
    }
    const taken = run.step({
      type: 'acquire',
      workerId,
      acquisitionId: call.acquisitionId,
      fencingToken: this.nextToken,
      reacquire: call.reacquire ?? this.reacquire,
      now,
      ttlSeconds,
    });
    const lease = toLease(runId, run.lease!);
    if (!taken) return { type: 'lease.refused', runId, workerId, lease };
    if (before === null || lease.expiresAt !== before.expiresAt) this.#unreported.add(run, ttlSeconds);
    if (lease.fencingToken !== this.nextToken) return { type: 'lease.granted', lease, extended: true, previous: null };
    if (before !== null) this.#ownedByToken.delete(before.fencingToken);
    this.#ownedByToken.add(this.nextToken++, run);
    return { type: 'lease.granted', lease, extended: false, previous: before && toLease(runId, before) };
  }

  heartbeat(call: HeartbeatCall): RegistryAnswer {
    const now = this.#advance(call.now);
    const run = this.#ownedByToken.get(call.fencingToken);
    if (run === undefined) return invalid(call);
    const { leaseId, fencingToken, acquisitionId, ttlSeconds = this.ttlSeconds } = call;
    const before = run.lease!;
    const taken = run.step({ type: 'heartbeat', leaseId, fencingToken, acquisitionId, now, ttlSeconds });
    const after = run.lease!;
    if (after !== before) {
      if (after.expiresAt !== before.expiresAt) this.#unreported.add(run, ttlSeconds);
      return { type: 'lease.renewed', lease: toLease(run.runId, after) };
    }
    return invalid(call, taken ? toLease(run.runId, after) : null);
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
    if (!run.step({ type: 'release', leaseId, fencingToken, acquisitionId })) return invalid(call);
    this.#ownedByToken.delete(fencingToken);
    this.#keepIdle(run);
    return { type: 'lease.released', lease: toLease(run.runId, before) };
  }

  expire(call: ExpireCall): RegistryAnswer {
    const now = this.#advance(call.now);
    const leases: Lease[] = [];
    const expired: Lease[] = [];
    for (const run of this.#unreported.takeExpired(now)) {
      const lease = toLease(run.runId, run.lease!);
      leases.push(lease);
      if (run.step({ type: 'expire', now })) expired.push(lease);
    }
    return { type: 'lease.lapsed', leases, expired };
  }

  /** The current lease of the run, as a snapshot. */
  get(runId: string): Lease | null {
    const lease = this.#runs.get(runId)?.lease;
    return lease ? toLease(runId, lease) : null;
  }

  /** The lease actor of the run: while it is owned, and for some time after. None is made in a stopped registry. */
  actorOf(runId: string): LeaseActorRef | undefined {
    const run = this.#runs.get(runId);
    if (run === undefined || run.actor !== undefined) return run?.actor;
    return this.#stopped || this.#spawning.has(run) ? undefined : this.#spawn(run);
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

  static fromRecord(owner: RunsOwner, record: RegistryRecord, watched: Watched): RegistryRuns {
    const { ttlSeconds: ownTtlSeconds, reacquire } = record;
    const runs = new RegistryRuns(owner, { ttlSeconds: ownTtlSeconds, reacquire, watched });
    runs.nextToken = record.nextToken;
    runs.latestNow = record.latestNow ?? Number.NEGATIVE_INFINITY;
    const entries = record.leases.toSorted((one, other) => one.fencingToken - other.fencingToken);
    for (const entry of entries) runs.#restore(entry);
    entries.sort((one, other) => one.expiresAt - other.expiresAt);
    for (const { runId, ttlSeconds, reported } of entries)
      if (!reported) runs.#unreported.add(runs.#runs.get(runId)!, ttlSeconds);
    return runs;
  }

  /** Stops every lease actor. What is owned stays owned, and can still be read and written down. */
  stop(): void {
    this.#stopped = true;
    for (const { actor } of this.#runs.values()) if (actor !== undefined) this.#owner.stopChild(actor);
  }

  #advance(now: number): number {
    if (now > this.latestNow) this.latestNow = now;
    return this.latestNow;
  }

  #add(runId: string, value: LeaseState, lease: ChartLease | null): Run {
    const run = new Run(runId, value, lease);
    this.#runs.set(runId, run);
    this.#keepIdle(run);
    if (this.#watched(runId)) this.#spawn(run);
    return run;
  }

  #spawn(run: Run): LeaseActorRef {
    const { runId, logic } = run;
    this.#spawning.add(run);
    run.actor = createActor(logic, { id: runId, parent: this.#owner.self, input: { runId } });
    this.#spawning.delete(run);
    run.actor.start();
    return run.actor;
  }

  #keepIdle(run: Run): void {
    this.#idle.append(run);
    if (this.#idle.size > IDLE_RUNS) this.#forget(this.#idle.first!);
  }

  /** Drops a run that has been free for long, and its actor. */
  #forget(run: Run): void {
    this.#idle.remove(run);
    this.#runs.delete(run.runId);
    if (run.actor !== undefined) this.#owner.stopChild(run.actor);
  }

  #restore(entry: LeaseEntry): void {
    const { runId, workerId, leaseId, fencingToken, expiresAt, acquisitionId, state, ttlSeconds } = entry;
    const lease = { workerId, leaseId, fencingToken, expiresAt, acquisitionId };
    const run = this.#add(runId, state, lease);
    run.ttlSeconds = ttlSeconds;
    run.list!.remove(run);
    this.#ownedByToken.add(fencingToken, run);
  }
}

function invalid({ leaseId, fencingToken }: Claim, expired: Lease | null = null): RegistryAnswer {
  return { type: 'lease.invalid', leaseId, fencingToken, expired };
}
