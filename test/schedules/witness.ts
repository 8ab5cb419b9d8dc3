/** Counts by itself what the worker may believe, from what its store was asked and answered, and notes what is not so. */
import type { Moment } from '../../machines/keeper.types.ts';
import { LeaseLostError } from '../../src/errors.ts';
import type { HeldLease } from '../../src/manager/held-lease.ts';
import type { AcquireResult, RenewResult } from '../../src/stores/store.ts';
import type { Call, Calls, Witness } from './calls.ts';
import type { ScheduleClock } from './schedule-clock.ts';
import { MARGIN, TTL } from './settings.ts';

const BELIEVED = TTL - MARGIN;
/** Timers may come so early. */
const EARLY = 2e-6;
/** After a suspension the manager looks at its clocks within this. */
const WAKING = 1;

/** Where the hold is, as the schedule sees it. */
export type Phase = 'before' | 'asking' | 'working' | 'worked';

export class HoldWitness implements Witness {
  readonly violations: string[] = [];
  phase: Phase = 'before';
  /** The caller has aborted, or the manager was closed, before there was a grant. */
  isGivenUp = false;
  /** Since then the timers could not fire, or the machine has slept. */
  unnoticedSince: number | null = null;
  lease: HeldLease | null = null;
  signal: AbortSignal | null = null;
  /** The lease ended before the work did. */
  lost = false;
  /** So many calls had been sent when the store told of an extension after the deadline. It is to be given back. */
  lateAfter: number | null = null;
  /** The store told of a grant or an extension that nobody waited for any more: what it gave may be given back. */
  toldLate = false;
  readonly #clock: ScheduleClock;
  #deadline: Moment | null = null;
  #refused = false;
  #aborts = 0;
  calls!: Calls;

  constructor(clock: ScheduleClock) {
    this.#clock = clock;
  }

  get deadline(): Moment | null {
    return this.#deadline;
  }

  /** What is left by the clock that says less. */
  left(): number {
    if (this.#deadline === null) return 0;
    const { monotonicSeconds, bootSeconds } = this.#deadline;
    return Math.min(monotonicSeconds - this.#clock.monotonicSeconds(), bootSeconds - this.#clock.bootSeconds());
  }

  believes(): boolean {
    return this.#deadline !== null && !this.#refused && this.left() > 0;
  }

  sent(call: Call): void {
    const what = `${call.method} ${call.number}`;
    if (call.method === 'acquire') {
      if (this.isGivenUp) this.violate('C12', `${what} was sent after the wait had ended`);
      // Counts from here, should this one be granted.
      if (this.phase === 'asking') this.#deadline = deadlineOf(call.sentAt);
    }
    if (call.method === 'renew') {
      if (!this.believes()) this.violate('C3', `${what} was sent past the deadline`);
      if (this.calls.isOpen('renew')) this.violate('C7', `${what} was sent beside another one`);
      if (this.calls.of('release') !== undefined) this.violate('C10', `${what} was sent after the release`);
    }
    if (call.method === 'release') {
      if (this.phase === 'working') this.violate('C10', `${what} was sent before the work had settled`);
      // What a late answer extended is given back whatever else is on its way for the lost lease.
      const isLate = this.lost && this.toldLate;
      if (this.calls.isOpen('renew') && !isLate) this.violate('C10', `${what} was sent before the renewal had settled`);
    }
  }

  answered(call: Call): void {
    if (call.fate !== 'answered' && call.fate !== 'refused') return;
    const isInTime = !call.isGivenUp();
    if (call.method === 'acquire') {
      const { status } = call.result as AcquireResult;
      if (status !== 'granted') return;
      if (this.phase === 'asking' && isInTime && !this.isGivenUp) this.#deadline = deadlineOf(call.sentAt);
      else this.toldLate = true;
    } else if (call.method === 'renew') {
      const { status } = (call.result as RenewResult[])[0]!;
      if (status === 'renewed' && (!isInTime || this.left() <= 0)) this.toldLate = true;
      if (status === 'lost') this.#refused ||= isInTime;
      else if (this.left() <= 0) this.lateAfter ??= this.calls.all.length;
      else if (isInTime) this.#deadline = later(this.#deadline!, deadlineOf(call.sentAt));
    }
  }

  /** The work has begun. */
  began(lease: HeldLease, watches: boolean): void {
    this.phase = 'working';
    this.lease = lease;
    if (!this.believes()) this.violate('C5', 'the work began without a deadline ahead');
    if (this.isGivenUp) this.violate('C12', 'the work began after the wait had ended');
    if (!watches) return;
    this.signal = lease.signal;
    this.signal.addEventListener('abort', () => this.#aborted());
  }

  /** The work is about to end. */
  ended(): void {
    this.lost = !this.believes();
    this.phase = 'worked';
  }

  /** Between two events. */
  look(asks: boolean): void {
    if (this.phase !== 'working' || this.lease === null) return;
    const believes = this.believes();
    const aborted = this.signal?.aborted;
    if (believes && aborted === true) this.violate('C6', 'the signal has aborted while the lease is held');
    if (!believes && aborted === false && !this.#isUnnoticed()) this.violate('C3', 'the signal has not aborted');
    if (asks) this.#ask(this.lease, believes);
  }

  #ask(lease: HeldLease, believes: boolean): void {
    const expected = believes ? this.left() : 0;
    const said = lease.remainingSeconds();
    if (Math.abs(said - expected) > 1e-9 || said > 0 !== believes) {
      const property = believes ? 'C1' : 'C4';
      this.violate(property, `${said} s are left, and it should be ${expected}`);
    }
    let thrown: unknown = null;
    try {
      lease.assertHeld();
    } catch (error) {
      thrown = error;
    }
    if ((thrown === null) !== believes) this.violate('C2', 'assertHeld does not say what the clocks say');
    if (thrown !== null && !(thrown instanceof LeaseLostError)) this.violate('C4', 'the loss is another error');
    if (thrown !== null && this.signal !== null && this.signal.reason !== thrown) {
      this.violate('C4', 'the reason of the abort is another error');
    }
  }

  #aborted(): void {
    this.#aborts += 1;
    if (this.#aborts > 1) this.violate('C4', 'the signal has aborted twice');
    if (!(this.signal?.reason instanceof LeaseLostError)) this.violate('C4', 'the reason is no loss');
    if (!this.#refused && this.left() > EARLY) this.violate('C6', 'the signal aborts before the deadline');
  }

  #isUnnoticed(): boolean {
    return this.unnoticedSince !== null && this.#clock.monotonicSeconds() - this.unnoticedSince < WAKING;
  }

  violate(property: string, what: string): void {
    this.violations.push(`${property}: ${what}, at ${this.#clock.monotonicSeconds()}`);
  }
}

function deadlineOf({ monotonicSeconds, bootSeconds }: Moment): Moment {
  return { monotonicSeconds: monotonicSeconds + BELIEVED, bootSeconds: bootSeconds + BELIEVED };
}

function later(one: Moment, other: Moment): Moment {
  return {
    monotonicSeconds: Math.max(one.monotonicSeconds, other.monotonicSeconds),
    bootSeconds: Math.max(one.bootSeconds, other.bootSeconds),
  };
}
