/** A16: the shipped machine, its compiled table and the registry agree on the step that a run takes. */
import { initialTransition, transition } from 'xstate';
import type { LeaseContext, LeaseEvent } from '../../machines/lease.machine.ts';
import { leaseMachine } from '../../machines/lease.machine.ts';
import type { LeaseState } from '../../machines/lease.table.ts';
import { rowFor } from '../../machines/lease.table.ts';
import type { Reacquire } from '../../src/lease.ts';
import type { Step } from './registry-laws.ts';
import type { RegistryState } from './registry-state.ts';
import { leaseIdFor, RUNS, TTL, WORKERS } from './registry-state.ts';

interface Charted {
  readonly value: LeaseState;
  readonly context: LeaseContext;
}

/** Compares them along the steps of a search. What it has compared once it remembers. */
export class ChartComparison {
  readonly #compared = new Map<string, string | null>();
  readonly #reacquire: Reacquire;

  constructor(reacquire: Reacquire) {
    this.#reacquire = reacquire;
  }

  /** So many different steps of one run's chart were compared. */
  get size(): number {
    return this.#compared.size;
  }

  /** What is wrong, or null. A call that reaches no run's chart is not compared. */
  difference({ before, call, after }: Step): string | null {
    const reached = runReachedBy(before, call);
    if (reached < 0) return null;
    const { now, nextToken } = before;
    const key = `${shortOf(before, reached)} ${now}${nextToken} ${call.name} ${shortOf(after, reached)}`;
    let difference = this.#compared.get(key);
    if (difference === undefined) {
      difference = this.#compare(chartOf(before, reached), this.#eventFor(call, before), chartOf(after, reached));
      this.#compared.set(key, difference);
    }
    return difference;
  }

  #compare(before: Charted, event: LeaseEvent, after: Charted): string | null {
    const stepped = textOf(tableStep(before, event));
    if (stepped !== textOf(machineStep(before, event))) return 'A16 the machine and its table differ';
    return stepped === textOf(after) ? null : 'A16 the registry and the chart differ';
  }

  #eventFor(call: Step['call'], { now, nextToken }: RegistryState): LeaseEvent {
    switch (call.kind) {
      case 'acquire': {
        const ask = { workerId: WORKERS[call.worker]!, fencingToken: nextToken, reacquire: this.#reacquire };
        return { type: 'acquire', ...ask, now, ttlSeconds: TTL };
      }
      case 'heartbeat':
        return { type: 'heartbeat', leaseId: call.claim.leaseId, fencingToken: call.claim.token, now, ttlSeconds: TTL };
      case 'release':
        return { type: 'release', leaseId: call.claim.leaseId, fencingToken: call.claim.token };
      default:
        return { type: 'expire', now };
    }
  }
}

/** The registry finds the run of a claim by its token. `expire` reaches several runs, and those that it names only. */
function runReachedBy({ runs, now }: RegistryState, call: Step['call']): number {
  switch (call.kind) {
    case 'acquire':
      return call.run;
    case 'heartbeat':
    case 'release':
      return runs.findIndex((owned) => owned?.token === call.claim.token);
    case 'expire':
      return runs.findIndex((owned) => owned !== null && !owned.reported && owned.expiresAt <= now);
    default:
      return -1;
  }
}

/** All that `chartOf` looks at. */
function shortOf({ runs }: RegistryState, run: number): string {
  const owned = runs[run]!;
  if (owned === null) return `${run}`;
  return `${run}${owned.worker}${owned.token}${owned.expiresAt}${owned.expired ? 'x' : ''}`;
}

function chartOf({ runs }: RegistryState, run: number): Charted {
  const owned = runs[run]!;
  const runId = RUNS[run]!;
  if (owned === null) return { value: 'free', context: { runId, lease: null } };
  const { worker, token, expiresAt, expired } = owned;
  const ids = { workerId: WORKERS[worker]!, leaseId: leaseIdFor(token, { run, worker }), fencingToken: token };
  const lease = { ...ids, expiresAt, acquisitionId: undefined };
  return { value: expired ? 'expired' : 'held', context: { runId, lease } };
}

function tableStep({ value, context }: Charted, event: LeaseEvent): Charted {
  const row = rowFor(value, context, event);
  const lease = row?.update ? row.update(context, event) : context.lease;
  return { value: row?.target ?? value, context: { runId: context.runId, lease } };
}

function machineStep({ value, context }: Charted, event: LeaseEvent): Charted {
  const [initial] = initialTransition(leaseMachine, { runId: context.runId });
  const from = leaseMachine.resolveState({ ...initial, value, context });
  const [after] = transition(leaseMachine, from, event);
  return { value: after.value, context: after.context };
}

function textOf({ value, context: { runId, lease } }: Charted): string {
  if (lease === null) return `${value} ${runId}`;
  return `${value} ${runId} ${lease.leaseId} ${lease.fencingToken} ${lease.expiresAt}`;
}
