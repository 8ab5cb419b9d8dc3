/**
 * The second check: puts what was granted and renewed into the order of the tokens and of the server's own clock, and looks
 * at each step. It trusts the expiry that the store answers with, so it sees expiries to the last unit, where the search has
 * the length of a call; and it knows nothing but leases and their ends.
 */
import { printCall, type Call } from './history.ts';

/** A grant or a renewal, by the server's clock in milliseconds. */
interface Prolonged {
  readonly call: Call;
  /** When the server did it, if it has made the lease longer. */
  readonly at: number;
  readonly until: number;
}

interface Lease {
  readonly token: number;
  readonly worker: string;
  readonly prolonged: Prolonged[];
}

/** Less than the smallest unit of a store. What is lost when a double holds seconds since 1970. */
const ROUNDING = 0.0005;

/** What is wrong, a sentence each. */
export function checkServerTime(calls: readonly Call[]): readonly string[] {
  const leases = leasesOf(calls).toSorted((one, other) => one.token - other.token);
  return leases.flatMap((lease, index) => [
    ...renewedTooLate(lease, calls),
    ...grantedTooEarly(leases.slice(0, index), lease, calls),
  ]);
}

function leasesOf(calls: readonly Call[]): readonly Lease[] {
  const leases = new Map<number, Lease>();
  for (const call of calls) {
    const { ask, answer } = call;
    const isProlonged = answer?.is === 'granted' || answer?.is === 'renewed';
    if (!isProlonged || answer.until === undefined || (ask.kind !== 'acquire' && ask.kind !== 'renew')) continue;
    const token = answer.is === 'granted' ? answer.token : (ask as { token: number }).token;
    const lease = leases.get(token) ?? { token, worker: ask.worker, prolonged: [] };
    lease.prolonged.push({ call, at: answer.until - ask.ttl, until: answer.until });
    leases.set(token, lease);
  }
  for (const { prolonged } of leases.values()) {
    // Of those that are told one expiry the longest ttl has made it. The others have not made the lease longer.
    prolonged.sort((one, other) => one.until - other.until || one.at - other.at);
  }
  return [...leases.values()];
}

/** B4 B5 each prolongation came before the expiry that stood, unless one without an answer may have come between. */
function renewedTooLate({ worker, prolonged }: Lease, calls: readonly Call[]): readonly string[] {
  return prolonged.flatMap((each, index) => {
    const before = prolonged[index - 1];
    if (before === undefined || each.at < before.until - ROUNDING || isLongerUnseen(worker, each, calls)) return [];
    const late = (each.at - before.until).toFixed(3);
    return [`Prolonged ${late} ms after its expiry: ${printCall(each.call)}, after ${printCall(before.call)}`];
  });
}

/** B1 a newer lease came at the expiry of every older one or later, unless that had ended otherwise. */
function grantedTooEarly(older: readonly Lease[], { prolonged }: Lease, calls: readonly Call[]): readonly string[] {
  const first = prolonged[0]!;
  return older.flatMap((lease) => {
    const last = lease.prolonged.at(-1)!;
    if (first.at >= last.until - ROUNDING || mayHaveEnded(lease, calls)) return [];
    const early = (last.until - first.at).toFixed(3);
    return [`Granted ${early} ms before an expiry: ${printCall(first.call)}, after ${printCall(last.call)}`];
  });
}

function isLongerUnseen(worker: string, { call }: Prolonged, calls: readonly Call[]): boolean {
  return calls.some(
    ({ ask, answer, at }) =>
      answer === null && (ask.kind === 'acquire' || ask.kind === 'renew') && ask.worker === worker && at <= call.end,
  );
}

function mayHaveEnded({ token, worker }: Lease, calls: readonly Call[]): boolean {
  return calls.some(({ ask, answer }) => {
    if (ask.kind === 'revoke') return answer === null || (answer.is === 'revoked' && answer.token === token);
    if (ask.kind !== 'release' || ask.worker !== worker || answer?.is === 'kept') return false;
    return answer === null || ask.token === undefined || ask.token === token;
  });
}
