/**
 * The same question answered in the plainest way, for histories of a few calls: every order is tried, with every moment of a
 * grid as the time of each call, on a store of one run that knows the time. It shares nothing with the checker.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Answer, Ask, Call, Claim } from './history.ts';

export interface Store {
  readonly token: number;
  readonly worker: string;
  readonly acquisition: string;
  readonly state: 'never' | 'current' | 'released' | 'revoked';
  readonly expiry: number;
  readonly version: number;
  readonly content: string;
}

export const EMPTY: Store = {
  token: 0,
  worker: '',
  acquisition: '',
  state: 'never',
  expiry: 0,
  version: 0,
  content: '',
};

/** Fine enough for the few moments that must lie between two others, where all times and durations are whole. */
const GRID = 1 / 8;
const HORIZON = 40;

/** What one call gives at that time, and what stands then. Tokens are one more each. */
export function serve(store: Store, ask: Ask, now: number): readonly [Answer, Store] {
  const isCurrent = store.state === 'current';
  const isLive = isCurrent && store.expiry > now;
  const { token, worker } = store;
  switch (ask.kind) {
    case 'acquire': {
      const { acquisition } = ask;
      const expiry = now + ask.ttl;
      if (!isLive) {
        const next = { ...store, token: token + 1, worker: ask.worker, acquisition, state: 'current', expiry } as const;
        return [{ is: 'granted', token: token + 1, extended: false }, next];
      }
      if (worker !== ask.worker || !(ask.extend || acquisition === store.acquisition)) {
        return [{ is: 'held', worker, token, remaining: store.expiry - now }, store];
      }
      const next = { ...store, acquisition, expiry: Math.max(store.expiry, expiry) };
      return [{ is: 'granted', token, extended: true }, next];
    }
    case 'renew':
      if (!isLive || !isNewest(store, ask)) return [lostOf(store, ask), store];
      return [{ is: 'renewed' }, { ...store, expiry: Math.max(store.expiry, now + ask.ttl) }];
    case 'release': {
      const isTheirs = isCurrent && isNewest(store, { ...ask, token: ask.token ?? token });
      return isTheirs ? [{ is: 'released' }, { ...store, state: 'released' }] : [{ is: 'kept' }, store];
    }
    case 'revoke':
      return isCurrent
        ? [
            { is: 'revoked', worker, token },
            { ...store, state: 'revoked' },
          ]
        : [{ is: 'none' }, store];
    case 'read': {
      if (store.state === 'never') return [{ is: 'none' }, store];
      const state = isLive ? 'held' : isCurrent ? 'expired' : 'free';
      const remaining = isLive ? store.expiry - now : 0;
      return [{ is: 'record', state, worker, token, fence: token, remaining }, store];
    }
    case 'fence':
      return [{ is: 'fence', token }, store];
    case 'open':
      if (!isCurrent || !isNewest(store, ask)) return [lostOf(store, ask), store];
      return [{ is: 'opened', version: store.version, content: store.content }, store];
    case 'commit':
      if (!isCurrent || !isNewest(store, ask)) return [lostOf(store, ask), store];
      if (ask.version !== store.version) return [{ is: 'conflict' }, store];
      return [{ is: 'committed' }, { ...store, version: store.version + 1, content: ask.content }];
  }
}

function isNewest({ token, worker, acquisition }: Store, claim: Claim): boolean {
  return token === claim.token && worker === claim.worker && acquisition === claim.acquisition;
}

function lostOf(store: Store, claim: Claim): Answer {
  if (store.token > claim.token) return { is: 'lost', reason: 'superseded' };
  if (store.token < claim.token || store.worker !== claim.worker) return { is: 'lost', reason: 'unknown' };
  if (store.acquisition !== claim.acquisition) return { is: 'lost', reason: 'superseded' };
  if (store.state === 'current') return { is: 'lost', reason: 'expired' };
  return { is: 'lost', reason: store.state === 'revoked' ? 'revoked' : 'released' };
}

/** @param looksApart - whether a call that changes nothing may have looked at the clock later than at the run. */
export function hasOrder(calls: readonly Call[], looksApart: boolean): boolean {
  const tried = new Set<string>();
  const explore = (left: readonly Call[], store: Store, now: number): boolean => {
    const answered = left.filter(({ answer }) => answer !== null);
    if (answered.length === 0) return true;
    const before = Math.min(...answered.map(({ end }) => end));
    if (now > before) return false;
    const key = JSON.stringify([left.map((call) => calls.indexOf(call)), store, now]);
    if (tried.has(key)) return false;
    tried.add(key);
    return left.some(
      (call) => call.at <= before && timesOf(call, now).some((time) => next(left, call, store, now, time)),
    );
  };
  const next = (left: readonly Call[], call: Call, store: Store, now: number, time: number): boolean => {
    const [answer, after] = serve(store, call.ask, time);
    if (call.answer === null ? after === store : !isDeepStrictEqual(call.answer, answer)) return false;
    const others = left.filter((other) => other !== call);
    return explore(others, after, setsClock(call.ask, answer, looksApart) ? time : now);
  };
  return explore(calls, EMPTY, 0);
}

function timesOf({ at, end }: Call, now: number): readonly number[] {
  const first = Math.max(at, now);
  const count = Math.floor((Math.min(end, HORIZON) - first) / GRID) + 1;
  return Array.from({ length: Math.max(0, count) }, (_, index) => first + index * GRID);
}

/** Whether no later call can have an earlier time: it kept others off the run, or its answer tells the time as of its step. */
function setsClock(ask: Ask, answer: Answer, looksApart: boolean): boolean {
  if (answer.is === 'held') return !looksApart;
  if (answer.is === 'record') return answer.state !== 'free' && !looksApart;
  if (answer.is === 'lost') return answer.reason === 'expired' && ask.kind === 'renew';
  return ['granted', 'renewed', 'released', 'revoked'].includes(answer.is);
}
