/**
 * What properties A1 to A11 say of one call: the state before it, its answer, the state after it. Written without the
 * registry's own rules, so that an error in those is found. Gives what is wrong, or null.
 */
import type { RegistryAnswer } from '../../machines/registry.events.ts';
import type { Reacquire } from '../../src/lease.ts';
import type { Call, Shown } from './registry-calls.ts';
import type { Owned, RegistryState } from './registry-state.ts';
import { leaseIdFor, RUNS, TTL } from './registry-state.ts';

export interface Step {
  readonly before: RegistryState;
  readonly call: Call;
  readonly answer: RegistryAnswer;
  readonly after: RegistryState;
}

export function brokenLaw(step: Step, reacquire: Reacquire): string | null {
  return brokenAlways(step) ?? brokenByCall(step, reacquire);
}

/** The place of the run whose current lease the claim is, or -1. Lease id and token must both be its own. */
export function runOf({ runs }: Pick<RegistryState, 'runs'>, { leaseId, token }: Shown): number {
  return runs.findIndex(
    (owned, run) =>
      owned !== null && owned.token === token && leaseId === leaseIdFor(token, { run, worker: owned.worker }),
  );
}

export function isLive(owned: Owned | null, now: number): boolean {
  return owned !== null && now < owned.expiresAt;
}

/** Whether the call must leave everything as it was: not even a chart has anything to notice. */
export function staysAlike({ runs, now }: RegistryState, call: Call, reacquire: Reacquire): boolean {
  switch (call.kind) {
    case 'acquire': {
      const owned = runs[call.run]!;
      return isLive(owned, now) && !(reacquire === 'extend' && owned.worker === call.worker);
    }
    case 'heartbeat': {
      const owned = runs.find((other) => other?.token === call.claim.token);
      if (!owned || owned.expired) return true;
      return isLive(owned, now) && runOf({ runs }, call.claim) < 0;
    }
    case 'release':
      return runOf({ runs }, call.claim) < 0;
    case 'expire':
      return runs.every((owned) => owned === null || owned.reported || isLive(owned, now));
    case 'tick':
      return false;
    default:
      return call satisfies never;
  }
}

function brokenAlways({ before, call, answer, after }: Step): string | null {
  const now = call.kind === 'tick' ? before.now + 1 : before.now;
  if (after.now !== now) return 'A11 a time that went back did not count as the latest seen';
  const grants = answer.type === 'lease.granted' && !answer.extended ? 1 : 0;
  if (after.nextToken !== before.nextToken + grants) return 'A2 the counter did not rise by one for each grant';
  for (const owned of after.runs) {
    if (owned !== null && owned.expired && isLive(owned, now)) return 'A4 the chart calls a live lease expired';
  }
  return null;
}

function brokenByCall(step: Step, reacquire: Reacquire): string | null {
  const { before, call, answer } = step;
  switch (call.kind) {
    case 'acquire':
      return brokenAcquire(step, call, reacquire);
    case 'heartbeat':
      return brokenHeartbeat(step, runOf(before, call.claim));
    case 'release':
      return brokenRelease(step, runOf(before, call.claim));
    case 'expire':
      return brokenExpire(step);
    case 'tick':
      return answer.type === 'lease.invalid' ? changed(step, -1) : 'A8 a claim of nobody is valid';
    default:
      return call satisfies never;
  }
}

function brokenAcquire(step: Step, { run, worker }: Call & { kind: 'acquire' }, reacquire: Reacquire): string | null {
  const { before, answer, after } = step;
  const was = before.runs[run]!;
  const lease = after.runs[run]!;
  if (!isLive(was, before.now)) {
    if (answer.type !== 'lease.granted' || answer.extended) return 'A4 a run without a live lease was refused';
    if (answer.lease.fencingToken !== before.nextToken) return 'A2 the grant did not return the next token';
    const granted = { worker, token: before.nextToken, expiresAt: before.now + TTL, expired: false, reported: false };
    return same(lease, granted) ? changed(step, run) : 'A4 the new lease is not as asked for';
  }
  if (reacquire === 'extend' && was.worker === worker) {
    if (answer.type !== 'lease.granted' || !answer.extended) return 'A9 the own worker was not extended';
    return same(lease, extended(was, before.now)) ? changed(step, run) : 'A9 an extension changed more than expiresAt';
  }
  return answer.type === 'lease.refused' ? changed(step, -1) : 'A5 a live lease lost its run';
}

function brokenHeartbeat(step: Step, run: number): string | null {
  const { before, answer, after } = step;
  const was = before.runs[run] ?? null;
  const renewed = answer.type === 'lease.renewed';
  if (was === null) return renewed ? 'A8 a heartbeat without its own claim succeeded' : changed(step, -1);
  if (!isLive(was, before.now)) return renewed ? 'A6 a heartbeat revived an expired lease' : changed(step, -1);
  if (!renewed) return 'A6 a live lease was refused its heartbeat';
  return same(after.runs[run]!, extended(was, before.now)) ? changed(step, run) : 'A6 more than expiresAt changed';
}

function brokenRelease(step: Step, run: number): string | null {
  const released = step.answer.type === 'lease.released';
  if (run < 0) return released ? 'A8 a release without its own claim succeeded' : changed(step, -1);
  if (!released) return 'A7 the release of the current lease was refused';
  return step.after.runs[run] === null ? changed(step, run) : 'A7 the run was not freed';
}

/** Names what has lapsed, once. Nothing else changes. */
function brokenExpire(step: Step): string | null {
  const { before, answer, after } = step;
  if (answer.type !== 'lease.lapsed') return 'A4 expire gave no answer';
  const named = new Set<string>(answer.leases.map(({ runId }) => runId));
  for (const [run, was] of before.runs.entries()) {
    if (was === null) continue;
    const lapsed = !isLive(was, before.now);
    if (named.has(RUNS[run]!) !== (lapsed && !was.reported)) return 'A4 expire did not name what has lapsed';
    const expected = { ...was, expired: lapsed, reported: lapsed };
    if (!same(after.runs[run]!, expected) && !same(after.runs[run]!, { ...expected, expired: was.expired }))
      return 'A3 expire changed a lease';
  }
  return answer.leases.length === named.size ? null : 'A4 expire named a lease twice';
}

function extended(owned: Owned, now: number): Owned {
  return { ...owned, expiresAt: Math.max(owned.expiresAt, now + TTL), expired: false, reported: false };
}

/** Whether a run but the one of the call has changed. A chart may notice that its lease has expired. */
function changed({ before, after }: Step, mayChange: number): string | null {
  for (const [run, was] of before.runs.entries()) {
    const lease = after.runs[run]!;
    if (run === mayChange || same(was, lease)) continue;
    if (was && lease && same({ ...was, expired: true }, lease)) continue;
    return mayChange < 0 ? 'A3 a call that was refused changed a run' : 'A10 the call changed another run';
  }
  return null;
}

function same(one: Owned | null, other: Owned | null): boolean {
  if (one === null || other === null) return one === other;
  return (
    one.worker === other.worker &&
    one.token === other.token &&
    one.expiresAt === other.expiresAt &&
    one.expired === other.expired &&
    one.reported === other.reported
  );
}
