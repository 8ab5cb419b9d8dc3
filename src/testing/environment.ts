/**
 * The environment of one run as a model: two workers, a clock that moves by half a ttl, and what anybody may still have in
 * hand. The lease machine inside it gives the answers; `scenarios.ts` explores it.
 *
 * A world holds real tokens and times. Two worlds are one state of the model when `keyOf` gives both the same key, which
 * keeps only what an answer can depend on: the chart's state, the time relative to expiry, and the stalest claim around.
 */
import type { Snapshot, SnapshotFrom } from 'xstate';
import { initialTransition, transition } from 'xstate';
import { leaseMachine } from '../../machines/lease.machine.ts';
import type { LeaseEvent } from '../../machines/lease.machine.ts';
import type { Claim } from '../../machines/lease.rules.ts';
import { isExpired, leaseIdOf } from '../../machines/lease.rules.ts';
import { rowFor } from '../../machines/lease.table.ts';
import type { Reacquire } from '../lease.ts';
import type { After, ClaimChange, Step, Worker } from './scenario.ts';

/** Leases of stores carry an acquisition id, those of a registry do not. */
export type ScenarioKind = 'registry' | 'store';

/** What can happen, told relative to what is there. */
export type EnvironmentEvent =
  | {
      readonly type: 'acquire';
      /** `same`: whoever has or last had the run. */
      readonly by: 'same' | 'other';
      readonly acquisition: 'fresh' | 'repeated';
      readonly reacquire: Reacquire;
    }
  | { readonly type: 'heartbeat' | 'release'; readonly claim: ClaimKind }
  | { readonly type: 'expire' }
  | { readonly type: 'advance' };

/** `stale`: the latest lease or acquisition that is not current any more. */
export type ClaimKind = 'current' | 'stale' | 'never-issued' | 'another-worker';

/** A lease that was given to a worker: a token, and where leases carry one, an acquisition id. */
interface Handle extends Claim {
  readonly name: string;
  readonly worker: Worker;
}

export type World = Snapshot<undefined> & {
  readonly kind: ScenarioKind;
  readonly chart: SnapshotFrom<typeof leaseMachine>;
  readonly now: number;
  /** Every lease that was given out, the newest last. */
  readonly leases: readonly Handle[];
  readonly current: Handle | null;
  readonly stale: Handle | null;
  readonly steps: readonly Step[];
  /** Of the last step: the chart's rule that it took. */
  readonly rule: string | null;
};

/** A step, before it is known what can be seen after it. */
type Untold<OneStep extends Step> = OneStep extends Step ? Omit<OneStep, 'after'> : never;

/** The clock moves by one, half a ttl. */
const TTL = 2;
const RUN = 'run';

export function initialWorld(kind: ScenarioKind): World {
  const [chart] = initialTransition(leaseMachine, { runId: RUN });
  return {
    status: 'active',
    output: undefined,
    error: undefined,
    kind,
    chart,
    now: 0,
    leases: [],
    current: null,
    stale: null,
    steps: [],
    rule: null,
  };
}

/** What can happen next. Bounded: what differs in nothing that an answer could depend on is left out. */
export function eventsIn(world: World): readonly EnvironmentEvent[] {
  const { current, stale } = world;
  const claims: ClaimKind[] = [
    ...(current ? (['current', 'another-worker'] as const) : []),
    ...(stale ? (['stale'] as const) : []),
    'never-issued',
  ];
  return [
    ...acquiresIn(world),
    ...claims.map((claim) => ({ type: 'heartbeat', claim }) as const),
    ...claims.map((claim) => ({ type: 'release', claim }) as const),
    { type: 'expire' },
    ...(current && ttlsLeft(world) >= 0 ? [{ type: 'advance' } as const] : []),
  ];
}

function acquiresIn(world: World): readonly EnvironmentEvent[] {
  const acquire = { type: 'acquire', by: 'same', acquisition: 'fresh', reacquire: 'extend' } as const;
  return [
    acquire,
    { ...acquire, reacquire: 'refuse' },
    ...(world.leases.length > 0 ? [{ ...acquire, by: 'other' } as const] : []),
    ...(world.leases.length > 0 && world.kind === 'store'
      ? [{ ...acquire, acquisition: 'repeated', reacquire: 'refuse' } as const]
      : []),
  ];
}

/** The world after the event, with one step more in its story. Pure. */
export function happen(world: World, event: EnvironmentEvent): World {
  switch (event.type) {
    case 'acquire':
      return acquire(world, event);
    case 'heartbeat':
    case 'release':
      return claim(world, event);
    case 'expire':
      return told(send(world, { type: 'expire', now: world.now }), { call: 'expire' });
    case 'advance':
      return told({ ...world, now: world.now + 1, rule: null }, { call: 'advance', ttls: 1 / TTL });
  }
}

function acquire(world: World, event: Extract<EnvironmentEvent, { type: 'acquire' }>): World {
  const last = world.current ?? world.stale;
  const worker = last === null ? 'worker-a' : event.by === 'same' ? last.worker : otherThan(last.worker);
  const acquisitionId = event.acquisition === 'repeated' ? last?.acquisitionId : nextAcquisition(world);
  const fencingToken = newestToken(world) + 1;
  const { reacquire } = event;
  const next = send(world, {
    type: 'acquire',
    ...{ workerId: worker, fencingToken, acquisitionId, reacquire, now: world.now, ttlSeconds: TTL },
  });
  const call = {
    call: 'acquire',
    worker,
    ...(acquisitionId !== undefined && { acquisition: acquisitionId }),
    reacquire,
  } as const;
  const lease = next.chart.context.lease!;
  if (lease === world.chart.context.lease) {
    return told(next, { ...call, expect: { answer: 'held', by: world.current!.name } });
  }
  const known = world.leases.find((one) => sameClaim(one, lease));
  const { leaseId } = lease;
  const name = `lease-${world.leases.length + 1}`;
  const handle = known ?? { name, worker, leaseId, fencingToken: lease.fencingToken, acquisitionId };
  const granted: World = {
    ...next,
    leases: known ? world.leases : [...world.leases, handle],
    current: handle,
    stale: known ? world.stale : (world.current ?? world.stale),
  };
  const token = lease.fencingToken === fencingToken ? 'new' : 'same';
  return told(granted, { ...call, expect: { answer: 'granted', lease: handle.name, token } });
}

function claim(world: World, event: Extract<EnvironmentEvent, { type: 'heartbeat' | 'release' }>): World {
  const { handle, change } = claimed(world, event.claim);
  const worker = handle?.worker ?? 'worker-a';
  const workerId = change === 'another-worker' ? otherThan(worker) : worker;
  const fencingToken = change === 'never-issued' ? newestToken(world) + 1 : handle!.fencingToken;
  const shown = { leaseId: leaseIdOf(RUN, workerId, fencingToken), fencingToken, acquisitionId: handle?.acquisitionId };
  const next =
    event.type === 'release'
      ? send(world, { type: 'release', ...shown })
      : send(world, { type: 'heartbeat', now: world.now, ttlSeconds: TTL, ...shown });
  const accepted = next.chart.context.lease !== world.chart.context.lease;
  const call = { call: event.type, claim: { lease: handle?.name ?? null, change }, expect: { accepted } } as const;
  const freed = event.type === 'release' && accepted;
  return told(freed ? { ...next, current: null, stale: world.current } : next, call);
}

function claimed(world: World, kind: ClaimKind): { readonly handle: Handle | null; readonly change: ClaimChange } {
  switch (kind) {
    case 'current':
      return { handle: world.current, change: 'none' };
    case 'stale':
      return { handle: world.stale, change: 'none' };
    default:
      return { handle: world.current ?? world.stale, change: kind };
  }
}

function send(world: World, event: LeaseEvent): World {
  const { value, context } = world.chart;
  const [chart] = transition(leaseMachine, world.chart, event);
  return { ...world, chart, rule: rowFor(value, context, event)?.rule ?? null };
}

function told(world: World, call: Untold<Step>): World {
  return { ...world, steps: [...world.steps, { ...call, after: afterwards(world) }] };
}

/** What can be seen of the run by the rules, whatever state the chart is in. */
function afterwards(world: World): After {
  const lease = world.chart.context.lease;
  return {
    state: lease === null ? 'free' : isExpired(lease, world.now) ? 'expired' : 'held',
    lease: world.current?.name ?? null,
    newest: world.leases.at(-1)?.name ?? null,
    ttlsLeft: Math.max(0, ttlsLeft(world)),
  };
}

/** The state of the model that the world is in: what the next answers can depend on, and no more. */
export function keyOf(world: World): string {
  const time = world.current ? ` ${timeOf(world)}` : '';
  return `${world.chart.value}${time}, ${staleness(world)}`;
}

function timeOf(world: World): string {
  const left = ttlsLeft(world);
  if (left <= 0) return left < 0 ? 'after expiry' : 'at expiry';
  return left < 1 ? 'with half its ttl left' : 'with all its ttl left';
}

function staleness({ current, stale }: World): string {
  if (stale === null) return current ? 'the first lease' : 'never leased';
  if (current === null) return 'released';
  if (stale.fencingToken === current.fencingToken) return 'acquired again while live';
  return stale.worker === current.worker ? 'after one of the same worker' : 'after one of the other worker';
}

function ttlsLeft({ chart, now }: World): number {
  const lease = chart.context.lease;
  return lease === null ? 0 : (lease.expiresAt - now) / TTL;
}

function nextAcquisition({ kind, steps }: World): string | undefined {
  return kind === 'store' ? `acquisition-${steps.filter(({ call }) => call === 'acquire').length + 1}` : undefined;
}

function newestToken({ leases }: World): number {
  return leases.at(-1)?.fencingToken ?? 0;
}

function sameClaim(one: Claim, other: Claim): boolean {
  return one.fencingToken === other.fencingToken && one.acquisitionId === other.acquisitionId;
}

function otherThan(worker: Worker): Worker {
  return worker === 'worker-a' ? 'worker-b' : 'worker-a';
}
