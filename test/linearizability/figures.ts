/** What has happened in the histories of a store, and whether that is enough for their verdicts to mean something. */
import type { Verdict } from './checker.ts';
import { print, type Call } from './history.ts';

export interface Figures {
  histories: number;
  calls: number;
  /** New leases. */
  grants: number;
  /** Those of a run whose lease before had neither been released nor revoked, as far as is known. */
  takeOvers: number;
  /** Acquires of a held run, and claims that were refused. */
  refusals: number;
  /** Of these: renewals that came after the expiry. */
  expired: number;
  writes: number;
  unknown: number;
  ok: number;
  bad: number;
  undecided: number;
}

/** A history and what the checker says of it. */
export interface Judged {
  readonly runId: string;
  readonly calls: readonly Call[];
  readonly verdict: Verdict;
}

export function figuresOf(judged: readonly Judged[]): Figures {
  const histories = judged.map(({ calls }) => calls);
  const all = histories.flat();
  const count = (isMeant: (call: Call) => boolean): number => all.filter(isMeant).length;
  const verdicts = (is: Verdict['is']): number => judged.filter(({ verdict }) => verdict.is === is).length;
  return {
    histories: histories.length,
    calls: all.length,
    grants: count(isGrant),
    takeOvers: histories.reduce((sum, calls) => sum + takeOversOf(calls), 0),
    refusals: count(({ answer }) => answer !== null && ['held', 'lost', 'kept'].includes(answer.is)),
    expired: count(({ ask, answer }) => ask.kind === 'renew' && answer?.is === 'lost' && answer.reason === 'expired'),
    writes: count(({ answer }) => answer?.is === 'committed'),
    unknown: count(({ answer }) => answer === null),
    ok: verdicts('ok'),
    bad: verdicts('bad'),
    undecided: verdicts('undecided'),
  };
}

export function line(name: string, seed: number, figures: Figures): string {
  const { histories, calls, grants, takeOvers, refusals, expired, writes, unknown, ok, bad, undecided } = figures;
  return (
    `${name}: ${histories} histories from seed ${seed}, ${calls} calls, ${grants} grants, ${takeOvers} take-overs, ` +
    `${refusals} refusals (${expired} of a renewal past expiry), ${writes} writes, ${unknown} unknown; ` +
    `ok ${ok}, bad ${bad}, undecided ${undecided}`
  );
}

/** The history for a person to check, up to the answer that nothing explains. */
export function describeBad({ runId, verdict }: Judged): string {
  return verdict.is === 'bad' ? `${runId}\n${print(verdict.prefix)}\n${verdict.why}` : '';
}

function isGrant({ answer }: Call): boolean {
  return answer?.is === 'granted' && !answer.extended;
}

function takeOversOf(calls: readonly Call[]): number {
  const tokens = calls.flatMap(({ answer }) => (answer?.is === 'granted' && !answer.extended ? [answer.token] : []));
  const givenUp = new Set<number>();
  for (const { ask, answer } of calls) {
    if (ask.kind === 'release' && answer?.is !== 'kept') givenUp.add(ask.token ?? 0);
    if (answer?.is === 'revoked') givenUp.add(answer.token);
  }
  tokens.sort((one, other) => one - other);
  return tokens.slice(0, -1).filter((token) => !givenUp.has(token)).length;
}
