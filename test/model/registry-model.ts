/**
 * The registry as a model: the shipped `RegistryRuns` takes every step, restored from the state and written down after the
 * call. Time is counted in ticks. The laws look at each step, and so do the chart's machine and table.
 */
import type { AnyActorRef } from 'xstate';
import { createActor } from 'xstate';
import type { RegistryAnswer } from '../../machines/registry.events.ts';
import { registryLogic } from '../../machines/registry.logic.ts';
import { RegistryRuns } from '../../machines/registry.runs.ts';
import type { Lease, Reacquire } from '../../src/lease.ts';
import type { Call, RegistryBounds } from './registry-calls.ts';
import { callsIn, claimsIn, toEvent } from './registry-calls.ts';
import { ChartComparison } from './registry-chart.ts';
import { brokenLaw, isLive, runOf, staysAlike } from './registry-laws.ts';
import type { RegistryState } from './registry-state.ts';
import { decode, encode, fromRecord, INITIAL, leaseIdFor, RUNS, toRecord, WORKERS } from './registry-state.ts';
import type { Model, Outcome } from './search.ts';

export interface RegistryDesign {
  readonly reacquire: Reacquire;
  /** What a broken registry hears instead of the call. */
  readonly mishears?: (state: RegistryState, call: Call) => Call;
}

type Edge = readonly [name: string, Outcome<RegistryState>];

/** The runs belong to nobody, and nobody looks at them: no actor is ever spawned. */
const owner = {
  self: createActor(registryLogic, { input: { ttlSeconds: 1 } }) as AnyActorRef,
  stopChild: () => undefined,
};

export function registryModel(
  { reacquire, mishears = (_, call) => call }: RegistryDesign,
  bounds: RegistryBounds,
  chart: ChartComparison | null = new ChartComparison(reacquire),
): Model<RegistryState> {
  return {
    initial: INITIAL,
    encode,
    decode,
    *steps(before) {
      const record = toRecord(before, reacquire);
      const restored = () => RegistryRuns.fromRecord(owner, record, () => false);
      const runs = restored();
      yield* looks(runs, before);
      const calls = callsIn(before, bounds);
      yield* refusals(runs, before, calls);
      for (const call of calls) {
        if (staysAlike(before, call, reacquire)) continue;
        const changing = restored();
        const answer = asked(changing, mishears(before, call));
        const after = fromRecord(changing.toRecord(), issuedAfter(before, call, answer));
        yield [call.name, judged(before, call, answer, after)];
      }
    },
  };

  /** The calls that must change nothing, one after the other on one registry, which is written down after the last. */
  function* refusals(runs: RegistryRuns, before: RegistryState, calls: readonly Call[]): Generator<Edge> {
    for (const call of calls) {
      if (!staysAlike(before, call, reacquire)) continue;
      const outcome = judged(before, call, asked(runs, mishears(before, call)), before);
      yield [call.name, outcome];
      if (outcome !== before) return;
    }
    const after = fromRecord(runs.toRecord(), before.issued);
    if (after instanceof Error || encode(after) !== encode(before))
      yield ['refused calls', { violation: 'A3 a call that was refused changed something' }];
  }

  function judged(
    before: RegistryState,
    call: Call,
    answer: RegistryAnswer,
    after: RegistryState | Error,
  ): Outcome<RegistryState> {
    if (after instanceof Error) return { violation: after.message };
    const step = { before, call, answer, after };
    const violation = brokenLaw(step, reacquire) ?? chart?.difference(step) ?? null;
    return violation === null ? after : { violation };
  }
}

function asked(runs: RegistryRuns, call: Call): RegistryAnswer {
  const event = toEvent(call);
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
      return event satisfies never;
  }
}

function issuedAfter({ issued }: RegistryState, call: Call, answer: RegistryAnswer): RegistryState['issued'] {
  if (call.kind !== 'acquire' || answer.type !== 'lease.granted' || answer.extended) return issued;
  return [...issued, { run: call.run, worker: call.worker }];
}

/** What can be seen without a change: the current leases, one by one and together, and every claim's validity. */
function* looks(runs: RegistryRuns, state: RegistryState): Generator<Edge> {
  const leases = state.runs.map((_, run) => currentLease(state, run));
  for (const [run, lease] of leases.entries()) {
    if (!sameLease(runs.get(RUNS[run]!), lease)) yield [`get ${RUNS[run]}`, { violation: 'A4 get differs' }];
  }
  const listed = [...runs.leases()];
  const current = leases.filter((lease) => lease !== null).sort((one, other) => one.fencingToken - other.fencingToken);
  if (runs.size !== current.length || !current.every((lease, at) => sameLease(listed[at] ?? null, lease)))
    yield ['leases', { violation: 'A1 the current leases are listed wrongly' }];
  for (const { leaseId, token: fencingToken } of claimsIn(state)) {
    const run = runOf(state, { leaseId, token: fencingToken });
    for (const [at, runId] of RUNS.entries()) {
      const { type } = runs.validate({ type: 'lease.validate', runId, leaseId, fencingToken, now: state.now });
      const live = at === run && isLive(state.runs[run]!, state.now);
      if ((type === 'lease.valid') !== live)
        yield [`validate ${leaseId}, ${fencingToken}`, { violation: 'A4 validate is wrong' }];
    }
  }
}

function currentLease({ runs }: RegistryState, run: number): Lease | null {
  const owned = runs[run];
  if (!owned) return null;
  const { worker, token: fencingToken, expiresAt } = owned;
  const leaseId = leaseIdFor(fencingToken, { run, worker });
  return { runId: RUNS[run]!, workerId: WORKERS[worker]!, leaseId, fencingToken, expiresAt };
}

function sameLease(one: Lease | null, other: Lease | null): boolean {
  if (one === null || other === null) return one === other;
  return (
    one.runId === other.runId &&
    one.workerId === other.workerId &&
    one.leaseId === other.leaseId &&
    one.fencingToken === other.fencingToken &&
    one.expiresAt === other.expiresAt
  );
}
