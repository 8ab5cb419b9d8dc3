/** Renewals that are due in the same turn go out together, in one request per ttl. */
import type { KeeperContext, KeeperTimes, Moment, RenewAnswer } from '../../machines/keeper.types.ts';
import type { Clock } from '../clock.ts';
import type { LeaseRef, StoredLease } from '../lease.ts';
import type { LeaseStore, RenewResult } from '../stores/store.ts';
import type { OnStop } from './request.ts';
import { asLeaseError, judge, request } from './request.ts';
import { deadlineAfter, laterOf, momentOf, secondsLeft } from './worker-deadline.ts';

/** The largest request. */
const MAX_BATCH = 1000;
/**
 * A request ends before the last of its leases does. Those that end sooner are given up with the request on its way, and
 * what the store extends then is given back.
 */
const SHARE_OF_WHAT_IS_LEFT = 0.9;

interface Waiting {
  readonly lease: StoredLease;
  readonly times: KeeperTimes;
  readonly deadline: Moment;
  /** With so many at most it may share its request. */
  readonly company: number;
  readonly answer: (answer: RenewAnswer) => void;
  /** Nobody waits for the answer any more. */
  isStopped: boolean;
  onStopped: () => void;
}

export interface RenewalsOptions {
  readonly store: LeaseStore;
  readonly clock: Clock;
  /** Hears of a lease that the store extended after its deadline had passed here: nobody holds it any more. */
  readonly onLateExtension: (lease: StoredLease, times: KeeperTimes) => void;
}

/**
 * The renewals of one manager.
 *
 * A request without an answer may be the fault of a single run in it. So its leases go on in smaller company: the root of
 * its number at first, then alone. The slow run is left by itself within two requests, and costs no other lease its time.
 */
export class Renewals {
  readonly #store: LeaseStore;
  readonly #clock: Clock;
  readonly #onLateExtension: (lease: StoredLease, times: KeeperTimes) => void;
  #waiting: Waiting[] = [];

  constructor({ store, clock, onLateExtension }: RenewalsOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#onLateExtension = onLateExtension;
  }

  /** Renews with the others of this turn. Looks at the deadline first: past it, nothing is sent. Never rejects. */
  renew({ lease, deadline, times, company }: KeeperContext, onStop: OnStop): Promise<RenewAnswer> {
    if (lease === null || deadline === null) return Promise.resolve({ status: 'late' });
    return new Promise((answer) => {
      const shared = { company: company ?? MAX_BATCH, isStopped: false, onStopped: () => undefined };
      const one: Waiting = { lease, times, deadline, answer, ...shared };
      onStop(() => {
        one.isStopped = true;
        one.onStopped();
      });
      this.#waiting.push(one);
      if (this.#waiting.length === 1) this.#clock.after(0, () => this.#sendAll());
    });
  }

  #sendAll(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    const groups = new Map<string, Waiting[]>();
    for (const one of waiting) {
      if (one.isStopped || secondsLeft(one.deadline, this.#clock) <= 0) {
        one.answer({ status: 'late' });
        continue;
      }
      const key = `${one.times.ttlSeconds} ${one.company}`;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [one]);
      else group.push(one);
    }
    for (const group of groups.values()) {
      const size = Math.min(group[0]!.company, MAX_BATCH);
      for (let start = 0; start < group.length; start += size) void this.#send(group.slice(start, start + size));
    }
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    const { times } = batch[0]!;
    const sentAt = momentOf(this.#clock);
    const longest = Math.max(...batch.map(({ deadline }) => deadline.monotonicSeconds - sentAt.monotonicSeconds));
    const timeoutSeconds = Math.min(times.requestTimeoutSeconds, longest * SHARE_OF_WHAT_IS_LEFT);
    const leases = batch.map(({ lease }) => referenceOf(lease));
    try {
      const results = await request((signal) => this.#store.renew(leases, times.ttlSeconds, { signal }), {
        clock: this.#clock,
        timeoutSeconds,
        onStop: (stop) => whenAllStopped(batch, stop),
        onGivenUp: (sending) => this.#watchLate(batch, sending),
      });
      batch.forEach((one, index) => one.answer(this.#judge(one, results[index], sentAt)));
    } catch (error) {
      const { unknown } = judge(error);
      const answer = { status: 'failed', error: asLeaseError(error), unknown, shared: batch.length } as const;
      for (const one of batch) one.answer(answer);
    }
  }

  #judge(one: Waiting, result: RenewResult | undefined, sentAt: Moment): RenewAnswer {
    if (result === undefined) return { status: 'lost', reason: 'unknown' };
    if (result.status === 'lost') return { status: 'lost', reason: result.reason };
    // A late yes is a loss all the same: whoever looked at the clock meanwhile was told so.
    if (secondsLeft(one.deadline, this.#clock) <= 0) {
      this.#onLateExtension(one.lease, one.times);
      return { status: 'late' };
    }
    return { status: 'renewed', deadline: laterOf(one.deadline, deadlineAfter(sentAt, one.times)) };
  }

  /** An answer that nobody waits for any more may still tell that the store extended a lease which ended here. */
  #watchLate(batch: readonly Waiting[], sending: Promise<readonly RenewResult[]>): void {
    sending.then(
      (results) => {
        batch.forEach((one, index) => {
          const extended = results[index]?.status === 'renewed';
          if (extended && secondsLeft(one.deadline, this.#clock) <= 0) this.#onLateExtension(one.lease, one.times);
        });
      },
      () => undefined,
    );
  }
}

/** A request is given up early when each of its leases has ended: after a suspension, which a request's time does not count. */
function whenAllStopped(batch: readonly Waiting[], stop: () => void): void {
  let left = batch.filter(({ isStopped }) => !isStopped).length;
  const onStopped = (): void => {
    left -= 1;
    if (left === 0) stop();
  };
  for (const one of batch) one.onStopped = onStopped;
}

/** What names the lease at the store, and no more. */
export function referenceOf({ runId, workerId, fencingToken, acquisitionId }: LeaseRef): LeaseRef {
  return { runId, workerId, fencingToken, acquisitionId };
}
