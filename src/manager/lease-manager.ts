import { randomUUID } from 'node:crypto';
import type { KeeperInput, KeeperTimes } from '../../machines/keeper.types.ts';
import type { Clock } from '../clock.ts';
import { systemClock } from '../clock.ts';
import type { Holder } from '../errors.ts';
import { LeaseNotAvailableError } from '../errors.ts';
import { Emitter } from '../events.ts';
import type { Reacquire } from '../lease.ts';
import { checkFunction, checkName, checkObject, checkOneOf, checkSignal, checkWait } from '../options.ts';
import type { LeaseStore } from '../stores/store.ts';
import type { GuardedLease } from './guard.ts';
import { checkGuarded, guard } from './guard.ts';
import type { HeldLease } from './held-lease.ts';
import type { Work } from './hold.ts';
import type { ManagerEvents } from './manager-events.ts';
import type { LeaseManagerOptions } from './settings.ts';
import { checkFlag, checkManagerOptions, keeperTimes } from './settings.ts';
import { Tenures } from './tenures.ts';
import { uniqueWorkerId } from './worker-id.ts';

/** How one try for a run differs from the manager's settings. */
export interface TryAcquireOptions {
  /** Who acquires. @default the manager's worker id */
  readonly workerId?: string | undefined;
  /** How long the lease lives without a renewal, in seconds. @default the manager's */
  readonly ttlSeconds?: number | undefined;
  /** Ends the acquire with its own reason; what was granted meanwhile is given back. It has no effect on a granted lease. */
  readonly signal?: AbortSignal | undefined;
  /** Whether the lease is renewed while it is held. @default the manager's */
  readonly autoRenew?: boolean | undefined;
  /**
   * What an acquire gets that finds a live lease of the same worker id, from an earlier process for one. With `'extend'` it
   * takes that over at once, token and all, and the older handle ends. But then an ask of this worker's that was given up,
   * and comes late, ends its newer lease in the same way, which the worker learns at its next renewal only: until then
   * another worker may have the run. The fence goes with that late ask: it passes the older handle once more, and refuses
   * the newer one. @default 'refuse': it waits for the expiry
   */
  readonly reacquire?: Reacquire | undefined;
}

/** How one acquire differs from the manager's settings. */
export interface AcquireOptions extends TryAcquireOptions {
  /**
   * How long to go on asking for a run that is held, or a store that does not answer, in seconds from the call; `Infinity`
   * is until the signal. When it is over the store is asked once more, so the answer takes up to a request longer.
   * @default 0, one try
   */
  readonly waitSeconds?: number | undefined;
}

/**
 * Holds leases while work goes on: acquires, waits, renews, watches the deadline, releases.
 *
 * Nothing is ever thrown from the background: a loss is the signal's reason, and what `hold` rejects with. The store stays
 * the caller's; `close()` does not close it. While a lease is held its timers keep the process alive.
 *
 * @example
 * await using leases = new LeaseManager(store, { ttlSeconds: 30 });
 * await leases.hold('job-42', { waitSeconds: 60 }, async (lease) => {
 *   await importRows({ fencingToken: lease.fencingToken, signal: lease.signal });
 * });
 */
export class LeaseManager implements AsyncDisposable {
  /** Who acquires, where a call names nobody. Unique to this manager unless it was given. */
  readonly workerId: string;
  readonly #store: LeaseStore;
  readonly #options: LeaseManagerOptions;
  readonly #times: KeeperTimes;
  readonly #clock: Clock;
  readonly #events = new Emitter<ManagerEvents>();
  readonly #tenures: Tenures;
  #closing: Promise<void> | null = null;

  /** @throws TypeError or RangeError for settings that make no sense, or that cannot work together. */
  constructor(store: LeaseStore, options: LeaseManagerOptions = {}) {
    checkObject('store', store);
    checkFunction('store.acquire', store.acquire);
    checkManagerOptions(options);
    this.#store = store;
    this.#options = { ...options };
    this.#times = keeperTimes(options);
    this.#clock = options.clock ?? systemClock;
    this.workerId = options.workerId ?? uniqueWorkerId();
    this.#tenures = new Tenures({ store, clock: this.#clock, events: this.#events, inspect: options.inspect });
  }

  /**
   * Acquires the run, and renews its lease until it is released or lost.
   *
   * @throws LeaseNotAvailableError when another worker still has the run after `waitSeconds`, or, at once, when this
   * manager has it or asks for it (its holder's token is 0 then): two pieces of work must not run together under one worker
   * id. Wait, do not force.
   * @throws StoreUnavailableError when the store could not be asked: nothing was applied. OutcomeUnknownError when no
   * answer came in time: what may have been granted was given back, as far as the store can be reached.
   * @throws the signal's reason when it aborts first. With one that has aborted before, nothing is asked.
   */
  async acquire(runId: string, options: AcquireOptions = {}): Promise<HeldLease> {
    const input = this.#inputOf(runId, options);
    const holder = this.#tenures.holderOf(runId);
    if (holder !== null) throw new LeaseNotAvailableError(runId, holder, 0, whyTaken(holder));
    return this.#tenures.acquire(input, options.signal);
  }

  /** Asks the store once. Null when the run is held, by another worker or by this manager. Otherwise as `acquire`. */
  async tryAcquire(runId: string, options: TryAcquireOptions = {}): Promise<HeldLease | null> {
    try {
      checkObject('options', options);
      return await this.acquire(runId, { ...options, waitSeconds: 0 });
    } catch (error) {
      if (error instanceof LeaseNotAvailableError) return null;
      throw error;
    }
  }

  /**
   * Acquires the run, renews its lease while `work` runs, releases it, and returns what `work` returned.
   *
   * At most one lease on the run is live meanwhile, by the store's clock. That alone makes no write safe, since a worker may
   * stall after its last check: use a fenced write. On loss `lease.signal` aborts, and `hold` rejects even if `work`
   * succeeds. It waits for `work` and cannot stop it: work that hangs keeps its lease for as long as it is renewed. The
   * caller's own `signal` ends the wait for the run, not the work.
   *
   * @throws LeaseLostError when the lease ended before `work` had settled; its `result` or `workError` is what `work` gave.
   * Also when it ended before `work` could begin: then `work` does not run. Acquire again, read again, redo.
   * @throws whatever `work` throws, while the lease held, and whatever `acquire` throws.
   */
  async hold<Result>(runId: string, options: AcquireOptions, work: Work<Result>): Promise<Awaited<Result>> {
    checkFunction('work', work);
    const lease = await this.acquire(runId, options);
    return this.#tenures.hold(lease, work);
  }

  /**
   * Asks the store whether the lease is still its run's newest one, and resolves if so.
   *
   * It speaks of the moment at which it was asked: only a fence makes a write safe. As with a fence, expiry alone is no
   * loss, since a late worker is harmless while nobody took over. A re-acquire by the same worker keeps the token and is not
   * seen here.
   *
   * @throws LeaseLostError once the lease was superseded, released or revoked, or when the store knows nothing of it.
   * @throws StoreUnavailableError when the store could not be asked. It never passes then.
   */
  async guard(lease: GuardedLease): Promise<void> {
    checkGuarded(lease);
    this.#checkOpen();
    await guard(this.#store, this.#clock, lease, this.#times.requestTimeoutSeconds);
  }

  /** Calls the listener for every later event of that type, and returns how to stop that. A listener's error stops nothing. */
  on<Type extends keyof ManagerEvents>(type: Type, listener: (event: ManagerEvents[Type]) => void): () => void {
    checkFunction('listener', listener);
    return this.#events.on(type, listener);
  }

  /**
   * Ends every wait at once, waits for the work that runs under a hold, releases every lease. Later calls are refused. Work
   * that awaits it waits for itself.
   *
   * @throws AggregateError when leases could not be released, with every error. All were tried.
   */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const errors = await this.#tenures.close(new DOMException('The lease manager was closed', 'AbortError'));
    if (errors.length > 0) throw new AggregateError(errors, `${errors.length} leases could not be released`);
  }

  #checkOpen(): void {
    if (this.#closing !== null) throw new TypeError('Expected an open lease manager, but it was closed');
  }

  #inputOf(runId: string, options: AcquireOptions): KeeperInput {
    checkName('runId', runId);
    checkObject('options', options);
    const { workerId = this.workerId, ttlSeconds, waitSeconds = 0, signal, reacquire = 'refuse' } = options;
    const { autoRenew = this.#options.autoRenew ?? true } = options;
    checkName('workerId', workerId);
    checkWait('waitSeconds', waitSeconds);
    checkSignal('signal', signal);
    checkFlag('autoRenew', autoRenew);
    checkOneOf('reacquire', reacquire, ['extend', 'refuse']);
    const asIs = ttlSeconds === undefined && options.autoRenew === undefined;
    const times = asIs ? this.#times : keeperTimes(this.#options, { ttlSeconds, autoRenew });
    this.#checkOpen();
    signal?.throwIfAborted();
    const waitUntilSeconds = waitSeconds === Infinity ? null : this.#clock.monotonicSeconds() + waitSeconds;
    return { runId, workerId, acquisitionId: randomUUID(), reacquire, times, autoRenew, waitUntilSeconds };
  }
}

/** Why this manager does not ask again for a run of its own. Without a token it still waits for it. */
function whyTaken({ fencingToken }: Holder): string {
  return fencingToken === 0 ? 'this manager is asking for it already' : 'this manager has it already';
}
