/** The state of a registry with few runs, workers and tokens, written down as short as it goes. */
import type { LeaseEntry, RegistryRecord } from '../../machines/registry.events.ts';
import { leaseIdOf } from '../../machines/lease.rules.ts';
import type { Reacquire } from '../../src/lease.ts';

export const RUNS = ['run-1', 'run-2'] as const;
export const WORKERS = ['worker-a', 'worker-b'] as const;
export const TTL = 2;

/** Whom a token was issued to. Numbers are places in `RUNS` and `WORKERS`. */
export interface Issued {
  readonly run: number;
  readonly worker: number;
}

/** The current lease of a run. */
export interface Owned {
  readonly worker: number;
  readonly token: number;
  readonly expiresAt: number;
  /** What the chart has noticed. */
  readonly expired: boolean;
  /** Already named by `expire`. */
  readonly reported: boolean;
}

/** Everything that a call could show, and all that was ever handed out. */
export interface RegistryState {
  readonly now: number;
  readonly nextToken: number;
  readonly runs: readonly (Owned | null)[];
  /** The leases so far, the one with token 1 first. */
  readonly issued: readonly Issued[];
}

export const INITIAL: RegistryState = { now: 0, nextToken: 1, runs: RUNS.map(() => null), issued: [] };

export function leaseIdFor(token: number, { run, worker }: Issued): string {
  return leaseIdOf(RUNS[run]!, WORKERS[worker]!, token);
}

const FREE = '-----';

/** A digit for each field. */
export function encode({ now, nextToken, runs, issued }: RegistryState): string {
  let text = `${now}${nextToken}`;
  for (const owned of runs) {
    if (owned === null) text += FREE;
    else text += `${owned.worker}${owned.token}${owned.expiresAt}${+owned.expired}${+owned.reported}`;
  }
  for (const { run, worker } of issued) text += `${run}${worker}`;
  return text;
}

export function decode(key: string): RegistryState {
  const digit = (at: number): number => key.charCodeAt(at) - 48;
  const runs = RUNS.map((_, run): Owned | null => {
    const at = 2 + run * FREE.length;
    if (key[at] === '-') return null;
    const [worker, token, expiresAt] = [digit(at), digit(at + 1), digit(at + 2)];
    return { worker, token, expiresAt, expired: digit(at + 3) === 1, reported: digit(at + 4) === 1 };
  });
  const issued: Issued[] = [];
  for (let at = 2 + RUNS.length * FREE.length; at < key.length; at += 2) {
    issued.push({ run: digit(at), worker: digit(at + 1) });
  }
  return { now: digit(0), nextToken: digit(1), runs, issued };
}

/** The state as a registry at rest, to restore one from. */
export function toRecord({ now, nextToken, runs }: RegistryState, reacquire: Reacquire): RegistryRecord {
  const leases: LeaseEntry[] = [];
  for (const [run, owned] of runs.entries()) {
    if (owned === null) continue;
    leases.push({
      runId: RUNS[run]!,
      workerId: WORKERS[owned.worker]!,
      leaseId: leaseIdFor(owned.token, { run, worker: owned.worker }),
      fencingToken: owned.token,
      expiresAt: owned.expiresAt,
      ttlSeconds: TTL,
      state: owned.expired ? 'expired' : 'held',
      reported: owned.reported,
    });
  }
  return { version: 1, ttlSeconds: TTL, reacquire, nextToken, latestNow: now, leases };
}

/** A registry at rest as a state, after `issued` were handed out. A run with two leases, or none of ours, is an error. */
export function fromRecord(
  { nextToken, latestNow, leases }: RegistryRecord,
  issued: readonly Issued[],
): RegistryState | Error {
  const runs: (Owned | null)[] = RUNS.map(() => null);
  for (const { runId, workerId, leaseId, fencingToken: token, expiresAt, state, reported } of leases) {
    const run = RUNS.indexOf(runId as (typeof RUNS)[number]);
    const worker = WORKERS.indexOf(workerId as (typeof WORKERS)[number]);
    if (runs[run] !== null) return new Error('A1 a run has two leases');
    if (leaseId !== leaseIdFor(token, { run, worker })) return new Error('A1 a lease is not named after its owner');
    runs[run] = { worker, token, expiresAt, expired: state === 'expired', reported };
  }
  return { now: latestNow!, nextToken, runs, issued };
}
