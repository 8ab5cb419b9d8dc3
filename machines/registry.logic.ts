/**
 * The registry: an actor that runs one lease chart per run that is owned, spawns their actors, and owns the token counter.
 *
 * It is actor logic of its own and no machine, since a parent machine copies all its children at every spawn. Its
 * children are real actors, inspectable and subscribable, with the chart as their `config`. They show what the chart of
 * their run does, which the compiled table decides.
 */
import type { ActorLogic, ActorRef, Snapshot } from 'xstate';
import type { Reacquire } from '../src/lease.ts';
import type { RegistryAnswer, RegistryEvent, RegistryRecord } from './registry.events.ts';
import type { Watched } from './registry.runs.ts';
import { RegistryRuns } from './registry.runs.ts';

/** How a registry actor is made. */
export interface RegistryInput {
  /** How long a lease lives without a heartbeat, in seconds. */
  readonly ttlSeconds: number;
  /** @default 'refuse' */
  readonly reacquire?: Reacquire | undefined;
  /** Which runs get their lease actor at once. The others get it from `runs.actorOf`, in the state they are in. @default all */
  readonly watched?: Watched | undefined;
}

/** The state of a registry actor. Plain in JSON; the runs themselves are not written down. */
export type RegistrySnapshot = Snapshot<undefined> & {
  readonly context: RegistryContext;
  /** What the last event was answered. */
  readonly answer: RegistryAnswer | undefined;
  /** The live table behind the actor. */
  readonly runs: RegistryRuns;
};

export interface RegistryContext {
  readonly nextToken: number;
  /** The latest `now` that was seen, or null when none was. */
  readonly latestNow: number | null;
  /** So many leases are current. */
  readonly leases: number;
}

/** A registry at rest, as `getPersistedSnapshot` gives it: plain JSON. */
export type PersistedRegistry = Snapshot<undefined> & {
  readonly record: RegistryRecord;
  readonly watched?: Watched | undefined;
};

/** The actor of a registry. */
export type RegistryActorRef = ActorRef<RegistrySnapshot, RegistryEvent>;

/**
 * The registry as actor logic. It starts no timer and reads no clock: what a call needs to know of the time comes with its
 * event. It takes a call as it comes, and leaves the answer in its snapshot: who checks the call also replies to it.
 */
export const registryLogic: ActorLogic<RegistrySnapshot, RegistryEvent, RegistryInput> = {
  config: {
    id: 'registry',
    description: 'Runs a lease chart for each run that is owned, spawns its actor, and owns the token counter.',
  },

  getInitialSnapshot: (scope, { ttlSeconds, reacquire = 'refuse', watched = watchAll }) =>
    active(new RegistryRuns(scope, { ttlSeconds, reacquire, watched })),

  transition: (snapshot, event: RegistryEvent | { readonly type: 'xstate.stop' }) => {
    const { runs } = snapshot;
    if (event.type === 'xstate.stop') {
      runs.stop();
      return { ...snapshot, status: 'stopped' } as RegistrySnapshot;
    }
    return active(runs, answerTo(runs, event));
  },

  getPersistedSnapshot: ({ runs }) => persistedRegistry(runs.toRecord()),

  restoreSnapshot: (snapshot, scope) => {
    const { record, watched = watchAll } = snapshot as PersistedRegistry;
    return active(RegistryRuns.fromRecord(scope, record, watched));
  },
};

/** A registry at rest, for `createActor`'s `snapshot`: it goes on from the record. */
export function persistedRegistry(record: RegistryRecord, watched?: Watched): PersistedRegistry {
  return { status: 'active', output: undefined, error: undefined, record, ...(watched && { watched }) };
}

function watchAll(): boolean {
  return true;
}

function answerTo(runs: RegistryRuns, event: RegistryEvent): RegistryAnswer | undefined {
  switch (event.type) {
    case 'lease.acquire':
      return runs.acquire(event);
    case 'lease.heartbeat':
      return runs.heartbeat(event);
    case 'lease.validate':
      return runs.validate(event);
    case 'lease.release':
      return runs.release(event);
    case 'lease.expire':
      return runs.expire(event);
    default:
      // Nothing that the registry knows.
      return undefined;
  }
}

function active(runs: RegistryRuns, answer?: RegistryAnswer): RegistrySnapshot {
  const { nextToken, latestNow, size } = runs;
  const context = { nextToken, latestNow: latestNow === Number.NEGATIVE_INFINITY ? null : latestNow, leases: size };
  return { status: 'active', output: undefined, error: undefined, context, answer, runs };
}
