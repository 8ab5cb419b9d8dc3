/** The shipped `LeaseRegistry`, driven along what a search of its runs has found. */
import { LeaseRegistry } from '../../src/index.ts';
import type { Call, RegistryBounds } from './registry-calls.ts';
import { callsIn } from './registry-calls.ts';
import { isLive, runOf } from './registry-laws.ts';
import type { RegistryState } from './registry-state.ts';
import { decode, encode, fromRecord, RUNS, toRecord, TTL, WORKERS } from './registry-state.ts';
import type { Model, Searched } from './search.ts';

/** How many walks went well, and the first that did not. */
export interface Walked {
  readonly walks: number;
  readonly difference: string | null;
}

/** One registry for each path that nothing goes on from, from its start to its end: every state lies on one of them. */
export function walkPaths({ tree }: Searched, bounds: RegistryBounds): Walked {
  const inner = new Set<string>();
  for (const came of tree.values()) if (came !== null) inner.add(came.from);
  const remembered = new Map<string, Call>();
  let walks = 0;
  for (const end of tree.keys()) {
    if (inner.has(end)) continue;
    const registry = new LeaseRegistry({ ttlSeconds: TTL });
    registry.validate(RUNS[0], 'nobody', 1, 0);
    const calls = callsTo(end, tree, bounds, remembered);
    for (const call of calls) ask(registry, call);
    if (keyOf(registry, decode(end)) !== end) return { walks, difference: calls.map(({ name }) => name).join('; ') };
    walks += 1;
  }
  return { walks, difference: null };
}

/** A registry restored in each state, for every step from there. */
export function walkEdges(model: Model<RegistryState>, { tree }: Searched, bounds: RegistryBounds): Walked {
  let walks = 0;
  for (const key of tree.keys()) {
    const state = decode(key);
    const calls = new Map(callsIn(state, bounds).map((call) => [call.name, call]));
    for (const [name, next] of model.steps(state)) {
      const call = calls.get(name);
      if (call === undefined || 'violation' in next) return { walks, difference: `${key}: ${name}` };
      const registry = LeaseRegistry.from(toRecord(state, 'refuse'));
      const succeeded = ask(registry, call);
      if (succeeded !== maySucceed(state, call) || keyOf(registry, next) !== encode(next))
        return { walks, difference: `${key}: ${name}` };
      walks += 1;
    }
  }
  return { walks, difference: null };
}

function callsTo(
  key: string,
  tree: Searched['tree'],
  bounds: RegistryBounds,
  remembered: Map<string, Call>,
): readonly Call[] {
  const calls: Call[] = [];
  for (let at = key, came = tree.get(at); came; at = came.from, came = tree.get(at)) {
    let call = remembered.get(at);
    if (call === undefined) {
      const { name, from } = came;
      call = callsIn(decode(from), bounds).find((one) => one.name === name)!;
      remembered.set(at, call);
    }
    calls.push(call);
  }
  return calls.reverse();
}

/** Makes the call, and tells whether it succeeded; of `expire`, whether something had lapsed. */
function ask(registry: LeaseRegistry, call: Call): boolean {
  switch (call.kind) {
    case 'acquire':
      return registry.acquire(RUNS[call.run]!, WORKERS[call.worker]!, call.now) !== null;
    case 'heartbeat':
      return registry.heartbeat(call.claim.leaseId, call.claim.token, call.now);
    case 'release':
      return registry.release(call.claim.leaseId, call.claim.token);
    case 'expire':
      return registry.expire(call.now).length > 0;
    case 'tick':
      return registry.validate(RUNS[0], 'nobody', 1, call.now);
    default:
      return call satisfies never;
  }
}

function maySucceed(state: RegistryState, call: Call): boolean {
  const { runs, now } = state;
  switch (call.kind) {
    case 'acquire':
      return !isLive(runs[call.run]!, now);
    case 'heartbeat': {
      const run = runOf(state, call.claim);
      return run >= 0 && isLive(runs[run]!, now);
    }
    case 'release':
      return runOf(state, call.claim) >= 0;
    case 'expire':
      return runs.some((owned) => owned !== null && !owned.reported && !isLive(owned, now));
    default:
      return false;
  }
}

function keyOf(registry: LeaseRegistry, { issued }: RegistryState): string {
  const state = fromRecord(registry.toJSON(), issued);
  return state instanceof Error ? state.message : encode(state);
}
