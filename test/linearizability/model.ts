/**
 * The rules of one run: what a call finds, what it may be answered, and what it leaves. Written from the statements B2 to B19
 * and not from the stores, whose code it shares nothing with.
 */
import type { LostReason } from '../../src/lease.ts';
import type { Answer, Ask, Call, Claim } from './history.ts';
import {
  claimed,
  expired,
  INSTANT,
  live,
  locked,
  named,
  orElse,
  reasonOf,
  stands,
  strange,
  untouched,
  withZone,
  type RunModel,
  type Step,
  type StoreRules,
} from './run.ts';
import { expiringAfter, within, withoutExpiry } from './zone.ts';

/** What may stand after the call, with the answer that it had. Without one: what may stand after its effect, if it has any. */
export function step(run: RunModel, call: Call, rules: StoreRules): Step {
  switch (call.ask.kind) {
    case 'acquire':
      return acquire(run, call, call.ask, rules);
    case 'renew':
      return renew(run, call, call.ask, rules);
    case 'release':
      return release(run, call, call.ask);
    case 'revoke':
      return revoke(run, call);
    case 'read':
      return read(run, call, rules);
    case 'fence':
      return fence(run, call);
    case 'open':
    case 'commit':
      return access(run, call, call.ask);
  }
}

function acquire(run: RunModel, call: Call, ask: Ask & { kind: 'acquire' }, rules: StoreRules): Step {
  const { answer } = call;
  if (answer === null) return [...grant(run, call, ask, rules), ...extend(run, call, ask, rules)];
  if (answer.is === 'granted' && !answer.extended) return orElse(grant(run, call, ask, rules), 'it is not free', run);
  if (answer.is === 'granted') {
    return orElse(extend(run, call, ask, rules), 'there is no live lease that this acquire may extend', run);
  }
  if (answer.is !== 'held') return strange(answer);
  const holder = named(run, answer.worker, answer.token);
  if (run.state !== 'current' || holder === null) return 'it is held by nobody, or by another' + stands(run);
  if (mayExtend(run, ask)) return 'the lease is the asking worker’s own' + stands(run);
  return orElse(live(holder, call, rules, answer.remaining), 'it has expired, or has another time left', run);
}

/** B2 a lease of its own, with a new token. */
function grant(run: RunModel, call: Call, ask: Ask & { kind: 'acquire' }, rules: StoreRules): readonly RunModel[] {
  const free = locked(run, call);
  const zone = free && (run.state === 'current' ? within(free, { leftMost: rules.slack }) : free);
  const token = nextToken(run, call.answer, rules);
  if (zone === null || token === null) return [];
  const { worker, acquisition, ttl } = ask;
  return [{ ...run, ...token, worker, acquisition, state: 'current', zone: expiringAfter(zone, ttl) }];
}

function nextToken(
  run: RunModel,
  answer: Answer | null,
  { tokens }: StoreRules,
): Pick<RunModel, 'token' | 'isTokenKnown'> | null {
  const newest = run.isTokenKnown ? run.token : run.token + 1;
  if (tokens === 'rise' && answer?.is !== 'granted') return { token: newest, isTokenKnown: false };
  const token = answer?.is === 'granted' ? answer.token : newest + 1;
  const fits = tokens === 'next' ? token === newest + 1 : token > newest;
  return fits ? { token, isTokenKnown: true } : null;
}

/** B4 B12 the worker's own live lease: its token stays, the acquisition is the new one. */
function extend(run: RunModel, call: Call, ask: Ask & { kind: 'acquire' }, rules: StoreRules): readonly RunModel[] {
  const known = call.answer?.is === 'granted' ? named(run, ask.worker, call.answer.token) : run;
  if (run.state !== 'current' || known === null || !mayExtend(run, ask)) return [];
  return prolong({ ...known, acquisition: ask.acquisition }, call, ask.ttl, rules);
}

function mayExtend(run: RunModel, ask: Ask & { kind: 'acquire' }): boolean {
  return run.worker === ask.worker && (ask.extend || run.acquisition === ask.acquisition);
}

function renew(run: RunModel, call: Call, ask: Ask & { kind: 'renew' }, rules: StoreRules): Step {
  const { answer } = call;
  if (answer !== null && answer.is !== 'lost' && answer.is !== 'renewed') return strange(answer);
  const known = claimed(run, ask);
  const current = known !== null && run.state === 'current';
  if (answer === null) return current ? prolong(known, call, ask.ttl, rules) : [];
  if (answer.is === 'renewed') {
    if (!current) return 'the lease is not the current one' + stands(run);
    return orElse(prolong(known, call, ask.ttl, rules), 'the lease has expired', run);
  }
  if (answer.reason !== 'expired') return refused(run, call, ask, answer.reason);
  if (!current) return 'the lease is not the current one' + stands(run);
  const now = locked(run, call);
  return orElse(withZone(known, now && within(now, { leftMost: rules.slack })), 'the lease is live', run);
}

/** B5 a live lease lives until its ttl from now, and never shorter than it did. */
function prolong(run: RunModel, call: Call, ttl: number, { slack }: StoreRules): readonly RunModel[] {
  const now = locked(run, call);
  const zone = now && within(now, { leftLeast: INSTANT - slack });
  if (zone === null) return [];
  const shorter = within(zone, { leftMost: ttl });
  const longer = zone.leftMost > ttl + INSTANT ? within(zone, { leftLeast: ttl }) : null;
  return [...withZone(run, shorter && expiringAfter(shorter, ttl)), ...withZone(run, longer)];
}

/** B6 past expiry too. */
function release(run: RunModel, call: Call, ask: Ask & { kind: 'release' }): Step {
  const { answer } = call;
  if (answer !== null && answer.is !== 'released' && answer.is !== 'kept') return strange(answer);
  const known = run.state === 'current' ? claimed(run, ask) : null;
  if (answer?.is === 'kept') {
    if (known !== null && known.isTokenKnown === run.isTokenKnown) return 'the lease is the current one' + stands(run);
    return untouched(run, call);
  }
  if (known === null) return answer === null ? [] : 'the lease is not the current one' + stands(run);
  return ended(known, call, 'released');
}

function revoke(run: RunModel, call: Call): Step {
  const { answer } = call;
  if (answer?.is === 'none') return run.state === 'current' ? 'there is a lease' + stands(run) : untouched(run, call);
  if (answer !== null && answer.is !== 'revoked') return strange(answer);
  const known = answer === null ? run : named(run, answer.worker, answer.token);
  if (run.state !== 'current' || known === null) return answer === null ? [] : 'there is no such lease' + stands(run);
  return ended(known, call, 'revoked');
}

function ended(run: RunModel, call: Call, state: 'released' | 'revoked'): readonly RunModel[] {
  const zone = locked(run, call);
  return withZone({ ...run, state }, zone && withoutExpiry(zone));
}

function read(run: RunModel, call: Call, rules: StoreRules): Step {
  const { answer } = call;
  if (answer === null) return [];
  if (answer.is === 'none') return run.state === 'never' ? untouched(run, call) : 'it was leased' + stands(run);
  if (answer.is !== 'record') return strange(answer);
  const known = named(run, answer.worker, answer.token);
  if (run.state === 'never' || known === null || answer.fence !== answer.token)
    return 'another lease is the newest' + stands(run);
  if ((answer.state === 'free') !== (run.state !== 'current')) return `it is not ${answer.state}` + stands(run);
  if (answer.state === 'free') return untouched(known, call);
  if (answer.state === 'held') {
    return orElse(live(known, call, rules, answer.remaining), 'it has expired, or has another time left', run);
  }
  return orElse(expired(known, call, rules), 'it is live', run);
}

function fence(run: RunModel, call: Call): Step {
  const { answer } = call;
  if (answer === null) return [];
  if (answer.is !== 'fence') return strange(answer);
  const known = named(run, run.worker, answer.token);
  return known === null ? 'another token is the highest' + stands(run) : untouched(known, call);
}

/** B16 B19 of a fenced access expiry alone refuses nothing. */
function access(run: RunModel, call: Call, ask: Ask & { kind: 'open' | 'commit' }): Step {
  const { answer } = call;
  if (answer?.is === 'lost') return refused(run, call, ask, answer.reason);
  const known = run.state === 'current' ? claimed(run, ask) : null;
  if (known === null) return answer === null ? [] : 'the lease is not the current one' + stands(run);
  if (ask.kind === 'open') {
    if (answer === null) return [];
    if (answer.is !== 'opened') return strange(answer);
    const isRead = answer.version === run.version && answer.content === run.content;
    return isRead ? untouched(known, call) : 'another write is the last one' + stands(run);
  }
  const isUnchanged = ask.version === run.version;
  if (answer?.is === 'conflict') {
    return isUnchanged ? 'nothing has changed since it was read' + stands(run) : untouched(known, call);
  }
  if (answer !== null && answer.is !== 'committed') return strange(answer);
  if (!isUnchanged) return answer === null ? [] : 'it has changed since it was read' + stands(run);
  return withZone({ ...known, version: run.version + 1, content: ask.content }, untouched(run, call)[0]?.zone ?? null);
}

/** Whether the call can change nothing any more, whatever comes: its token was superseded, or its lease has ended. */
export function isSpent({ token, isTokenKnown, state }: RunModel, { ask }: Call): boolean {
  if (ask.kind === 'acquire' || ask.kind === 'revoke') return false;
  if (ask.kind === 'read' || ask.kind === 'fence' || ask.kind === 'open') return true;
  if (ask.token === undefined) return false;
  return ask.token < token || (ask.token === token && (state !== 'current' || !isTokenKnown));
}

/** A claim that is not the current lease's is refused, with the reason why. */
function refused(run: RunModel, call: Call, ask: Claim, reason: LostReason): Step {
  const found = reasonOf(run, ask);
  if (found === 'none') return 'the lease is the current one' + stands(run);
  return found === 'any' || found === reason ? untouched(run, call) : `the reason is ${found}` + stands(run);
}
