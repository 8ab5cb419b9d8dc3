/** The calls that the search makes in a state: of every worker, on every run, with every claim that somebody could show. */
import type { RegistryEvent } from '../../machines/registry.events.ts';
import type { RegistryState } from './registry-state.ts';
import { leaseIdFor, RUNS, WORKERS } from './registry-state.ts';

/** What is shown for a lease. Not every claim belongs to one. */
export interface Shown {
  readonly leaseId: string;
  readonly token: number;
}

export type Call = { readonly name: string } & (
  | { readonly kind: 'acquire'; readonly run: number; readonly worker: number; readonly now: number }
  | { readonly kind: 'heartbeat'; readonly claim: Shown; readonly now: number }
  | { readonly kind: 'release'; readonly claim: Shown }
  | { readonly kind: 'expire' | 'tick'; readonly now: number }
);

export interface RegistryBounds {
  readonly ticks: number;
  readonly grants: number;
}

/**
 * At the time of the state, and where it may make a difference also one tick before it, which counts as the latest seen.
 * The first grant is that of worker-a for run-1: nothing but the names would differ otherwise.
 */
export function callsIn(state: RegistryState, bounds: RegistryBounds): Call[] {
  const calls: Call[] = [];
  const { now } = state;
  if (now < bounds.ticks) calls.push({ kind: 'tick', now: now + 1, name: `time passes to ${now + 1}` });
  calls.push({ kind: 'expire', now, name: 'expire' });
  for (let run = 0; run < RUNS.length; run += 1) {
    if (state.nextToken > bounds.grants && mayBeGranted(state, run)) continue;
    calls.push({ kind: 'acquire', run, worker: 0, now, name: `${WORKERS[0]} acquires ${RUNS[run]}` });
    if (state.issued.length === 0) break;
    calls.push({
      kind: 'acquire',
      run,
      worker: 1,
      now: now - 1,
      name: `${WORKERS[1]} acquires ${RUNS[run]}, a tick back`,
    });
  }
  for (const claim of claimsIn(state)) {
    const shown = `${claim.leaseId} with token ${claim.token}`;
    calls.push({ kind: 'heartbeat', claim, now, name: `heartbeat of ${shown}` });
    calls.push({ kind: 'release', claim, name: `release of ${shown}` });
  }
  for (const [run, owned] of state.runs.entries()) {
    if (owned === null) continue;
    const claim = { leaseId: leaseIdFor(owned.token, { run, worker: owned.worker }), token: owned.token };
    calls.push({ kind: 'heartbeat', claim, now: now - 1, name: `heartbeat of ${claim.leaseId}, a tick back` });
  }
  return calls;
}

/** Every lease that was ever handed out, and those of today with the id or the token of another, or with a token to come. */
export function claimsIn({ issued, runs, nextToken }: RegistryState): Shown[] {
  const claims = issued.map((lease, at) => ({ leaseId: leaseIdFor(at + 1, lease), token: at + 1 }));
  for (const [run, owned] of runs.entries()) {
    if (owned === null) continue;
    const { token } = owned;
    const leaseId = leaseIdFor(token, { run, worker: owned.worker });
    const other = claims[token % issued.length]!;
    claims.push({ leaseId, token: nextToken });
    if (other.token !== token) claims.push({ leaseId, token: other.token }, { leaseId: other.leaseId, token });
  }
  return claims;
}

/** The call as the registry's own event. */
export function toEvent(call: Call): RegistryEvent {
  switch (call.kind) {
    case 'acquire':
      return { type: 'lease.acquire', runId: RUNS[call.run]!, workerId: WORKERS[call.worker]!, now: call.now };
    case 'heartbeat':
      return {
        type: 'lease.heartbeat',
        leaseId: call.claim.leaseId,
        fencingToken: call.claim.token,
        now: call.now,
      };
    case 'release':
      return { type: 'lease.release', leaseId: call.claim.leaseId, fencingToken: call.claim.token };
    case 'expire':
      return { type: 'lease.expire', now: call.now };
    case 'tick':
      return { type: 'lease.validate', runId: RUNS[0], leaseId: 'nobody', fencingToken: 1, now: call.now };
    default:
      return call satisfies never;
  }
}

function mayBeGranted({ runs, now }: RegistryState, run: number): boolean {
  const owned = runs[run]!;
  return owned === null || owned.expiresAt <= now;
}
