import type { Moment } from '../../machines/keeper.types.ts';
import type { Clock } from '../clock.ts';
import { LeaseLostError } from '../errors.ts';
import type { LeaseRef, LostReason } from '../lease.ts';
import type { Keeper, News } from './keeper.ts';
import { lossController } from './loss-signal.ts';
import type { ManagerEvents } from './manager-events.ts';
import { secondsLeft } from './worker-deadline.ts';

/** Tells the manager's listeners. */
type Tell = <Type extends keyof ManagerEvents>(type: Type, event: ManagerEvents[Type]) => void;

interface Waiter<Answer> {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A lease that a manager holds: one handle from grant to end, whose state moves with every renewal.
 *
 * It is held until its deadline, counted on two clocks from the sending of the last good request, less a margin. Every
 * member looks at the clocks when it is asked, so the answer is right also after the event loop was blocked or the process
 * was stopped. Until the deadline no other worker was granted the run; afterwards nothing is promised. None of that makes
 * a write safe, since a worker may stall after its last check: use a fenced write, with `fencingToken`.
 *
 * Its own properties are plain data, so it can stand wherever a `LeaseRef` is asked for. While it is held its timers keep
 * the process alive.
 */
export class HeldLease implements LeaseRef, AsyncDisposable {
  readonly runId: string;
  readonly workerId: string;
  readonly leaseId: string;
  readonly fencingToken: number;
  readonly acquisitionId: string;
  /** How long the lease lives at the store without a renewal, in seconds. */
  readonly ttlSeconds: number;

  readonly #keeper: Keeper;
  readonly #clock: Clock;
  readonly #tell: Tell;
  #deadline: Moment;
  #ending: 'lost' | 'released' | null = null;
  #loss: LeaseLostError | null = null;
  /** Made when somebody asks for it: most short holds never do. */
  #controller: AbortController | null = null;
  /** Whoever has the handle knows of the loss: a member threw it, or they have the signal. */
  #told = false;
  #renewing: Waiter<void>[] = [];
  #releasing: Promise<boolean> | null = null;
  #release: Waiter<boolean> | null = null;

  /** @internal Leases come from a `LeaseManager`. */
  constructor(keeper: Keeper, clock: Clock, tell: Tell) {
    const { lease, deadline } = keeper.context;
    this.runId = lease!.runId;
    this.workerId = lease!.workerId;
    this.leaseId = lease!.leaseId;
    this.fencingToken = lease!.fencingToken;
    this.acquisitionId = lease!.acquisitionId;
    this.ttlSeconds = lease!.ttlSeconds;
    this.#deadline = deadline!;
    this.#keeper = keeper;
    this.#clock = clock;
    this.#tell = tell;
    keeper.listener = (news) => this.#hear(news);
  }

  /**
   * Aborts once, with the `LeaseLostError`, when the lease is lost. A release does not abort it.
   *
   * After a suspension of the machine it may come late, within a second of waking; `assertHeld()` and `remainingSeconds()`
   * are right at once.
   */
  get signal(): AbortSignal {
    this.#told = true;
    if (this.#controller === null) {
      const { loss } = this;
      this.#controller = lossController();
      if (loss !== null) this.#controller.abort(loss);
    }
    return this.#controller.signal;
  }

  /** The loss, or null. Looks at the clocks. */
  get loss(): LeaseLostError | null {
    if (this.#ending === null && secondsLeft(this.#deadline, this.#clock) <= 0) {
      this.#lose('expired');
      this.#keeper.send({ type: 'expire' });
    }
    return this.#loss;
  }

  /**
   * Returns while the lease is held, and throws otherwise. Right also when no timer could run.
   *
   * @throws LeaseLostError with `reason: 'released'` after a release, else with the reason of the loss.
   */
  assertHeld(): void {
    const { loss } = this;
    if (loss !== null) {
      this.#told = true;
      throw loss;
    }
    if (this.#ending === 'released') throw new LeaseLostError(this, 'released');
  }

  /** How long the worker may still believe that it holds the run, in seconds; 0 once it may not. */
  remainingSeconds(): number {
    if (this.loss !== null || this.#ending !== null) return 0;
    return Math.max(0, secondsLeft(this.#deadline, this.#clock));
  }

  /**
   * Renews now, or joins the renewal on its way. The deadline counts from its sending.
   *
   * @throws LeaseLostError when the lease was lost or released. Final.
   * @throws StoreUnavailableError or OutcomeUnknownError when this renewal failed. The deadline stays; call again.
   */
  async renew(): Promise<void> {
    this.assertHeld();
    await new Promise<void>((resolve, reject) => {
      this.#renewing.push({ resolve, reject });
      this.#keeper.send({ type: 'renew' });
    });
  }

  /**
   * Gives the run back, after the renewal on its way, and tells whether it was freed. `false`: it was no longer this
   * lease's. All calls share one request, which is retried within a bound of its own.
   *
   * @throws StoreUnavailableError or OutcomeUnknownError when the store could not be asked in time. The run is free after
   * the ttl.
   */
  release(): Promise<boolean> {
    if (this.#releasing !== null) return this.#releasing;
    if (this.loss !== null) return (this.#releasing = Promise.resolve(false));
    this.#ending = 'released';
    this.#releasing = new Promise((resolve, reject) => (this.#release = { resolve, reject }));
    this.#keeper.send({ type: 'release' });
    return this.#releasing;
  }

  /**
   * Releases. A failing release is not thrown: the run is free after the ttl.
   *
   * @throws LeaseLostError when the lease was lost and nothing has told so yet: neither `assertHeld()` nor `renew()` threw
   * it, and nobody asked for `signal`.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => undefined);
    if (this.#loss !== null && !this.#told) throw this.#loss;
  }

  /** What names the lease, for another process or a log. */
  toJSON(): LeaseRef & { readonly leaseId: string; readonly ttlSeconds: number } {
    const { runId, workerId, leaseId, fencingToken, acquisitionId, ttlSeconds } = this;
    return { runId, workerId, leaseId, fencingToken, acquisitionId, ttlSeconds };
  }

  #hear(news: News): void {
    const { context } = this.#keeper;
    switch (news) {
      case 'renewed':
        return this.#renewed(context.deadline!);
      case 'uncertain':
        return this.#uncertain(context.error, context.failures);
      case 'released':
        return this.#released(context.freed, context.error);
      case 'lost':
        return this.#lost(context.reason!);
      case 'broken':
        return this.#ending === 'released' ? this.#released(false, this.#keeper.error) : this.#lost('unknown');
      default:
        return undefined;
    }
  }

  #renewed(deadline: Moment): void {
    const leftSeconds = secondsLeft(this.#deadline, this.#clock);
    this.#deadline = deadline;
    for (const { resolve } of this.#settled()) resolve();
    this.#tell('renewed', { lease: this, leftSeconds });
  }

  #uncertain(error: unknown, failures: number): void {
    for (const { reject } of this.#settled()) reject(error);
    this.#tell('uncertain', { lease: this, error, failures, leftSeconds: this.remainingSeconds() });
  }

  #released(freed: boolean, error: unknown): void {
    for (const { reject } of this.#settled()) reject(new LeaseLostError(this, 'released'));
    if (error === null) this.#release?.resolve(freed);
    else this.#release?.reject(error);
    this.#tell('released', { lease: this, freed, error });
  }

  #lost(reason: LostReason): void {
    this.#lose(reason);
    this.#tell('lost', { lease: this, error: this.#loss! });
  }

  /** Final, and once. */
  #lose(reason: LostReason): void {
    if (this.#ending !== null) return;
    this.#ending = 'lost';
    const { error, times } = this.#keeper.context;
    const sinceRenewalSeconds = times.ttlSeconds - times.marginSeconds - secondsLeft(this.#deadline, this.#clock);
    const failure = reason === 'expired' ? error : this.#keeper.error;
    const cause = failure === null ? {} : { cause: failure };
    this.#loss = new LeaseLostError(this, reason, { ...cause, sinceRenewalSeconds });
    for (const { reject } of this.#settled()) reject(this.#loss);
    this.#controller?.abort(this.#loss);
  }

  /** Those who wait for a renewal, once each. */
  #settled(): Waiter<void>[] {
    if (this.#renewing.length === 0) return [];
    const waiting = this.#renewing;
    this.#renewing = [];
    return waiting;
  }
}
