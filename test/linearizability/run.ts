/** What is known of one run at a point of the order, and what a call can see of it. */
import type { LostReason } from '../../src/lease.ts';
import type { Answer, Call, Claim } from './history.ts';
import { later, within, zoneFrom, type Zone } from './zone.ts';

/** What differs from store to store. */
export interface StoreRules {
  /** `next`: a new token is one more than the last. `rise`: it is only higher. */
  readonly tokens: 'next' | 'rise';
  /**
   * When a call that changes nothing has read the server's clock. `at its step`: a call is one moment, in every respect.
   * `within the call`: it has looked at the run without keeping others off, and at the clock at another moment of the call.
   * What another call commits in between it then does not see, though its clock is ahead of that call's.
   */
  readonly clock: 'at its step' | 'within the call';
  /** How far apart two readings of the server's clock and of ours may be, in milliseconds, for its unit and its rate. */
  readonly slack: number;
}

export interface RunModel {
  /** Of the newest lease; 0 before the first. Where `isTokenKnown` is false, it is only known to be higher than this. */
  readonly token: number;
  readonly isTokenKnown: boolean;
  readonly worker: string;
  readonly acquisition: string;
  readonly state: 'never' | 'current' | 'released' | 'revoked';
  readonly version: number;
  readonly content: string;
  readonly zone: Zone;
}

/** What may stand after the call, or why it cannot have been answered like this. */
export type Step = readonly RunModel[] | string;

/** Live is strict: at its expiry a lease has expired. Less than any two moments that are told apart. */
export const INSTANT = 1e-6;

export function neverLeased(start: number): RunModel {
  const lease = { token: 0, isTokenKnown: true, worker: '', acquisition: '', state: 'never' } as const;
  return { ...lease, version: 0, content: '', zone: zoneFrom(start) };
}

/** Why a claim is not the current lease; `none` when it is, `any` when that depends on a token that nobody was told. */
export function reasonOf(run: RunModel, ask: Claim): LostReason | 'none' | 'any' {
  if (run.state === 'never') return 'unknown';
  if (ask.token < run.token || (ask.token === run.token && !run.isTokenKnown)) return 'superseded';
  if (!run.isTokenKnown) return 'any';
  if (ask.token > run.token || ask.worker !== run.worker) return 'unknown';
  if (ask.acquisition !== run.acquisition) return 'superseded';
  return run.state === 'current' ? 'none' : run.state;
}

/** The run, if that is its newest lease; an unknown token is known from then on. */
export function named(run: RunModel, worker: string, token: number): RunModel | null {
  if (run.worker !== worker) return null;
  if (run.isTokenKnown) return run.token === token ? run : null;
  return token > run.token ? { ...run, token, isTokenKnown: true } : null;
}

/** The run, if the claim is that of its newest lease. */
export function claimed(
  run: RunModel,
  ask: Omit<Claim, 'token'> & { readonly token: number | undefined },
): RunModel | null {
  if (run.worker !== ask.worker || run.acquisition !== ask.acquisition) return null;
  return ask.token === undefined ? run : named(run, ask.worker, ask.token);
}

/** A look at the clock by a call that keeps others off the run: never before that of the call before. */
export function locked({ zone }: RunModel, { at, end }: Call): Zone | null {
  return later(zone, at, end);
}

/** A call that changes nothing, and whose answer does not depend on the clock: it saw what was there before its end. */
export function untouched(run: RunModel, call: Call): readonly RunModel[] {
  return withZone(run, within(run.zone, { nowMost: call.end }));
}

/** The lease is live at some look at the clock, and has so much left then. */
export function live(run: RunModel, call: Call, { clock, slack }: StoreRules, remaining: number): readonly RunModel[] {
  const least = Math.max(INSTANT, remaining) - slack;
  const most = remaining + slack;
  if (clock === 'at its step') {
    const zone = locked(run, call);
    return withZone(run, zone && within(zone, { leftLeast: least, leftMost: most }));
  }
  const { at, end } = call;
  const bounds = { nowMost: end, expiryLeast: at + least, expiryMost: end + most, leftLeast: least };
  return withZone(run, within(run.zone, bounds));
}

/** The lease has expired at some look at the clock. */
export function expired(run: RunModel, call: Call, { clock, slack }: StoreRules): readonly RunModel[] {
  if (clock === 'at its step') {
    const zone = locked(run, call);
    return withZone(run, zone && within(zone, { leftMost: slack }));
  }
  return withZone(run, within(run.zone, { nowMost: call.end, expiryMost: call.end + slack }));
}

/** The very same object where nothing has become narrower, so that the search knows. */
export function withZone(run: RunModel, zone: Zone | null): readonly RunModel[] {
  if (zone === null) return [];
  return isSame(zone, run.zone) ? [run] : [{ ...run, zone }];
}

function isSame(one: Zone, other: Zone): boolean {
  return (Object.keys(one) as (keyof Zone)[]).every((bound) => one[bound] === other[bound]);
}

/** The runs, or why there is none, with what stood. */
export function orElse(runs: readonly RunModel[], why: string, run: RunModel): Step {
  return runs.length > 0 ? runs : why + stands(run);
}

export function strange(answer: Answer): string {
  return `no call of this kind is answered with ${answer.is}`;
}

export function stands({ token, isTokenKnown, worker, acquisition, state, version }: RunModel): string {
  const number = isTokenKnown ? token : `above ${token}`;
  return state === 'never'
    ? ', where it was never leased'
    : `, where ${worker} has token ${number} by ${acquisition}, ${state}, and version ${version} stands`;
}
