/** A command under its lease: told to end while the lease still holds, killed before anybody else can have the run. */
import { isLeaseError } from '../errors.ts';
import type { LeaseLostError } from '../errors.ts';
import type { EndingPlan } from './deadline.ts';
import { endingAt } from './deadline.ts';
import { killCommand, terminateCommand } from './process-group.ts';
import { monotonicSeconds } from './watchdog-messages.ts';

/** The part of a held lease that decides over the command. */
export interface SupervisedLease {
  /** Aborts when the lease is lost, with the `LeaseLostError`. */
  readonly signal: AbortSignal;
  remainingSeconds(): number;
}

export interface SupervisionOptions {
  readonly lease: SupervisedLease;
  readonly plan: EndingPlan;
  /** The command's own process, which leads its group. */
  readonly leaderId: number;
  /** The command was told to end, and is killed after so many seconds. Comes once. */
  readonly onTerminated: (why: string, killInSeconds: number) => void;
}

/** When the store says that somebody else may have the run, the command gets no longer than this. */
const GRACE_SECONDS_AFTER_LOSS = 2;
/** A timer stands still while the machine is suspended: look at the clocks at least this often. */
const LOOK_SECONDS = 1;
const LOOK_SECONDS_WHILE_ENDING = 0.05;

export class Supervision {
  readonly #options: SupervisionOptions;
  readonly #onAbort = () => this.#lose();
  #terminated = false;
  #stopped = false;
  /** Not later than this, whatever is renewed meanwhile. */
  #killAt = Infinity;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SupervisionOptions) {
    this.#options = options;
    options.lease.signal.addEventListener('abort', this.#onAbort);
    if (options.lease.signal.aborted) this.#lose();
    else this.#look();
  }

  /** Whether the command was ended, or should have been, for its lease. */
  get lost(): boolean {
    const { lease } = this.#options;
    return this.#terminated || lease.signal.aborted || lease.remainingSeconds() <= 0;
  }

  /** The watchdog has told the command to end, because this process stood still. */
  terminatedByWatchdog(): void {
    this.#terminated = true;
    this.#killWithin(this.#options.plan.graceSeconds);
    this.#look();
  }

  /** The command is gone. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#options.lease.signal.removeEventListener('abort', this.#onAbort);
  }

  #lose(): void {
    const isExpired = lossOf(this.#options.lease.signal)?.reason === 'expired';
    this.#killWithin(isExpired ? 0 : Math.min(GRACE_SECONDS_AFTER_LOSS, this.#options.plan.graceSeconds));
    this.#look();
  }

  #killWithin(seconds: number): void {
    this.#killAt = Math.min(this.#killAt, monotonicSeconds() + seconds);
  }

  #look(): void {
    clearTimeout(this.#timer);
    // The watchdog's word may come after the end of the command.
    if (this.#stopped) return;
    const { plan, leaderId } = this.#options;
    const { step, nextInSeconds } = endingAt(this.#remainingSeconds(), plan);
    if (step !== 'none' && !this.#terminated) this.#terminate(nextInSeconds);
    if (step === 'kill') killCommand(leaderId);
    const longest = step === 'none' ? LOOK_SECONDS : LOOK_SECONDS_WHILE_ENDING;
    this.#timer = setTimeout(() => this.#look(), Math.min(nextInSeconds || longest, longest) * 1000);
  }

  #terminate(killInSeconds: number): void {
    const { lease, leaderId, onTerminated } = this.#options;
    this.#terminated = true;
    this.#killWithin(killInSeconds);
    terminateCommand(leaderId);
    onTerminated(lossOf(lease.signal)?.message ?? 'The lease could not be renewed in time', killInSeconds);
  }

  #remainingSeconds(): number {
    const { lease, plan } = this.#options;
    const untilKill = this.#killAt - monotonicSeconds() + plan.reserveSeconds;
    return lease.signal.aborted ? untilKill : Math.min(untilKill, lease.remainingSeconds());
  }
}

function lossOf(signal: AbortSignal): LeaseLostError | undefined {
  const reason: unknown = signal.reason;
  return isLeaseError(reason) && reason.code === 'LEASE_LOST' ? (reason as LeaseLostError) : undefined;
}
