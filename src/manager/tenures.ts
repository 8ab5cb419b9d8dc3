import type { KeeperContext, KeeperInput, KeeperTimes } from '../../machines/keeper.types.ts';
import type { Clock } from '../clock.ts';
import { isLeaseError, LeaseNotAvailableError, OutcomeUnknownError, StoreUnavailableError } from '../errors.ts';
import type { Holder } from '../errors.ts';
import type { Emitter } from '../events.ts';
import type { Inspector } from '../inspect/quiet-inspector.ts';
import type { StoredLease } from '../lease.ts';
import type { LeaseStore } from '../stores/store.ts';
import { actorClock } from './actor-clock.ts';
import { giveBack } from './give-back.ts';
import { HeldLease } from './held-lease.ts';
import type { Work } from './hold.ts';
import { runUnder } from './hold.ts';
import { keeperActors, keeperDelays } from './keeper-actors.ts';
import type { KeeperOptions, News } from './keeper.ts';
import { Keeper } from './keeper.ts';
import type { ManagerEvents } from './manager-events.ts';
import { referenceOf, Renewals } from './renewals.ts';
import { SuspensionWatch } from './suspension-watch.ts';
import { WakeUps } from './wake-ups.ts';
import { momentOf, secondsToUnnoticed } from './worker-deadline.ts';

/** A run that is asked for, held, or given back. */
interface Tenure {
  readonly keeper: Keeper;
  readonly workerId: string;
  readonly cancel: (reason: unknown) => void;
  lease: HeldLease | null;
  /** Settles after the work, where there is work. Never rejects. */
  work: Promise<void> | null;
}

export interface TenuresOptions {
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly events: Emitter<ManagerEvents>;
  readonly inspect: Inspector | undefined;
}

/** The runs of one manager, each with its keeper, from the first ask to the end of the lease and of the work under it. */
export class Tenures {
  readonly #store: LeaseStore;
  readonly #clock: Clock;
  readonly #events: Emitter<ManagerEvents>;
  readonly #keeperOptions: KeeperOptions;
  readonly #wakeUps: WakeUps;
  readonly #watch: SuspensionWatch;
  readonly #tenures = new Map<string, Tenure>();
  readonly #background = new Set<Promise<unknown>>();
  #held = 0;
  #onEmpty: (() => void) | null = null;

  constructor({ store, clock, events, inspect }: TenuresOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#events = events;
    const wakeUps = (this.#wakeUps = new WakeUps(store));
    const renewals = new Renewals({ store, clock, onLateExtension: (...late) => this.#giveBackLate(...late) });
    const actors = keeperActors({ store, clock, renewals, wakeUps });
    this.#keeperOptions = { actors, delays: keeperDelays(clock), clock: actorClock(clock), inspect };
    this.#watch = new SuspensionWatch(clock, () => this.#lookAtClocks());
  }

  /** Who has the run here, or null. While it is only asked for, the token is 0. */
  holderOf(runId: string): Holder | null {
    const tenure = this.#tenures.get(runId);
    if (tenure === undefined) return null;
    const { workerId, lease } = tenure;
    return { workerId, fencingToken: lease?.fencingToken ?? 0, retryAfterSeconds: lease?.remainingSeconds() ?? 0 };
  }

  /** Asks for the run until the lease is granted, refused or given up. The run must not be here yet. */
  acquire(input: KeeperInput, signal: AbortSignal | undefined): Promise<HeldLease> {
    const { runId, workerId } = input;
    return new Promise((resolve, reject) => {
      const settled = (): void => {
        signal?.removeEventListener('abort', aborted);
        this.#wakeUps.forget(runId);
      };
      const cancel = (reason: unknown): void => {
        settled();
        reject(reason);
        tenure.keeper.send({ type: 'cancel' });
      };
      const aborted = (): void => cancel(signal!.reason);
      const hear = (news: News): void => {
        settled();
        if (news === 'granted') return resolve(this.#granted(runId, tenure));
        this.#remove(runId, tenure);
        reject(news === 'broken' ? tenure.keeper.error : refusalOf(tenure.keeper.context));
      };
      const keeper = new Keeper(input, this.#keeperOptions, hear);
      const tenure: Tenure = { keeper, workerId, cancel, lease: null, work: null };
      this.#tenures.set(runId, tenure);
      signal?.addEventListener('abort', aborted, { once: true });
      keeper.start();
    });
  }

  /** Runs the work under the lease. Until it has settled the run stays taken here, also when the lease was lost. */
  async hold<Result>(lease: HeldLease, work: Work<Result>): Promise<Awaited<Result>> {
    // It may have ended before the work could begin: a listener released it, or the manager was closed.
    lease.assertHeld();
    // A lease that is held is here until its end.
    const tenure = this.#tenures.get(lease.runId)!;
    let settled = (): void => undefined;
    // Before the work begins: it may close the manager, or lose its lease, before it awaits anything.
    tenure.work = new Promise((resolve) => (settled = resolve));
    try {
      return await runUnder(lease, work);
    } finally {
      settled();
      this.#remove(lease.runId, tenure);
    }
  }

  /** Ends every wait with the reason, waits for the work that runs, and releases everything. Gives what failed. */
  async close(reason: unknown): Promise<unknown[]> {
    const tenures = [...this.#tenures.values()];
    for (const { lease, cancel } of tenures) if (lease === null) cancel(reason);
    const releases = await Promise.allSettled(tenures.map(released));
    if (this.#tenures.size > 0) await new Promise<void>((resolve) => (this.#onEmpty = resolve));
    await Promise.all(this.#background);
    return releases.flatMap((release) => (release.status === 'rejected' ? [release.reason as unknown] : []));
  }

  #granted(runId: string, tenure: Tenure): HeldLease {
    const lease = new HeldLease(tenure.keeper, this.#clock, (type, event) => {
      if (type === 'lost' || type === 'released') this.#ended(runId, tenure);
      this.#events.emit(type, event);
    });
    tenure.lease = lease;
    this.#held += 1;
    this.#watch.start();
    this.#events.emit('granted', { lease, attempts: tenure.keeper.context.attempts });
    return lease;
  }

  #ended(runId: string, tenure: Tenure): void {
    this.#held -= 1;
    if (this.#held === 0) this.#watch.stop();
    if (tenure.work === null) this.#remove(runId, tenure);
  }

  #remove(runId: string, tenure: Tenure): void {
    if (this.#tenures.get(runId) !== tenure) return;
    this.#tenures.delete(runId);
    if (this.#tenures.size === 0) this.#onEmpty?.();
  }

  /**
   * Ends what has reached its deadline on either clock, and renews what was overslept, as the timer of its renewal is late,
   * too. Gives the seconds to the next deadline that no timer will notice.
   */
  #lookAtClocks(): number {
    const now = momentOf(this.#clock);
    let soonest = Infinity;
    for (const { lease, keeper } of this.#tenures.values()) {
      if (lease === null) continue;
      const unnoticed = secondsToUnnoticed(keeper.context.deadline!, now);
      if (unnoticed <= 0) {
        void lease.loss;
        continue;
      }
      if (unnoticed < Infinity && keeper.context.autoRenew) keeper.send({ type: 'renew' });
      soonest = Math.min(soonest, unnoticed);
    }
    return soonest;
  }

  /** The store extended a lease that had ended here. It is given back, though not while its work still runs. */
  #giveBackLate(late: StoredLease, times: KeeperTimes): void {
    const tenure = this.#tenures.get(late.runId);
    const lease = tenure?.lease;
    const isHere = lease?.acquisitionId === late.acquisitionId;
    if (isHere && lease?.loss === null) return;
    const done = (isHere ? tenure?.work : null) ?? Promise.resolve();
    const giving = done.then(() => giveBack(this.#store, this.#clock, referenceOf(late), times));
    this.#background.add(giving);
    void giving.finally(() => this.#background.delete(giving));
  }
}

/** After its work, where there is work. Otherwise at once, so that none can begin. */
async function released({ lease, work }: Tenure): Promise<void> {
  if (work !== null) await work;
  await lease?.release();
}

/** Why there was no grant, as the caller is told. */
function refusalOf({ runId, holder, attempts, error, unanswered }: KeeperContext): unknown {
  if (holder !== null) return new LeaseNotAvailableError(runId, holder, attempts);
  if (attempts === 1 || !(isLeaseError(error) && error.retryable)) return error;
  const text = `Asked ${attempts} times for the run, without success`;
  return unanswered
    ? new OutcomeUnknownError(text, { cause: error })
    : new StoreUnavailableError(text, { cause: error });
}
