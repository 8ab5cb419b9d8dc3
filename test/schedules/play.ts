/** Plays one schedule in virtual time, and gives what came out of the hold and what was not as it must be. */
import { getEventListeners } from 'node:events';
import type { Call } from './calls.ts';
import { Calls, RUN } from './calls.ts';
import type { Outcome } from './outcome.ts';
import { ABORTED, outcomeOf, RESULT, WORK_ERROR } from './outcome.ts';
import type { Event, Schedule } from './schedule.ts';
import { ScheduleClock, settle } from './schedule-clock.ts';
import { REQUEST_SECONDS, SETTINGS } from './settings.ts';
import type { MakeSubject, Subject } from './subject.ts';
import { HoldWitness } from './witness.ts';

/** The last renewal ends, and the release after it. */
const ENDING_SECONDS = REQUEST_SECONDS + 10 + 0.1;
/** Renewals and releases follow within this, where they follow at all. */
const LONGEST_PAUSE_SECONDS = 12;

export interface Played {
  readonly outcome: Outcome | 'pending';
  readonly violations: readonly string[];
}

export async function play(schedule: Schedule, make: MakeSubject): Promise<Played> {
  const player = new Player(schedule, make);
  for (const event of schedule.events) await player.take(event);
  return player.finish();
}

class Player {
  readonly #schedule: Schedule;
  readonly #clock = new ScheduleClock();
  readonly #witness: HoldWitness;
  readonly #calls: Calls;
  readonly #subject: Subject;
  readonly #caller = new AbortController();
  readonly #ends = { granted: 0, lost: 0, released: 0 };
  /** How the hold ended. */
  #settled: { readonly value?: unknown; readonly error?: unknown } | null = null;
  #endWork: () => void = () => undefined;
  #closing: Promise<void> | null = null;
  #isClosed = false;

  constructor(schedule: Schedule, make: MakeSubject) {
    this.#schedule = schedule;
    this.#witness = new HoldWitness(this.#clock);
    this.#calls = this.#witness.calls = new Calls(schedule, this.#clock, this.#witness);
    this.#subject = make(this.#calls.store, { ...SETTINGS, clock: this.#clock });
    for (const type of ['granted', 'lost', 'released'] as const) {
      this.#subject.leases.on(type, () => (this.#ends[type] += 1));
    }
  }

  async take(event: Event): Promise<void> {
    const wasUnnoticed = this.#witness.unnoticedSince !== null;
    const wasPending = this.#settled === null;
    if (typeof event !== 'string') await this.#takeCall(event);
    else if (event === 'hold') this.#hold();
    else if (event === 'deadline') await this.#comeToDeadline();
    else if (event === 'rest') await this.#pass(6);
    else if (event === 'rival') await this.#rival();
    else if (event === 'abort') await this.#giveUp(() => this.#caller.abort(ABORTED));
    else if (event === 'end') this.#end();
    else await this.#giveUp(() => this.#close());
    await this.#look();
    if (wasPending && this.#settled !== null) await this.#lookForTimers();
    // What was overdue fires after the one event that came before it.
    if (wasUnnoticed && this.#schedule.deadline === 'stall') {
      await this.#clock.advance(0);
      this.#witness.unnoticedSince = null;
      await this.#look();
    }
  }

  /** Ends what has not ended, and looks at what is left. */
  async finish(): Promise<Played> {
    await this.#clock.advance(0);
    this.#hold();
    for (let round = 0; round < 4 && this.#settled === null; round += 1) {
      await this.#pass(ENDING_SECONDS / 2);
      if (this.#witness.phase === 'asking') continue;
      this.#end();
      await this.#pass(ENDING_SECONDS);
    }
    const { violations } = this.#witness;
    const outcome = outcomeOf(this.#settled, this.#schedule, this.#witness);
    violations.push(...outcome.violations);
    await this.#pass(ENDING_SECONDS);
    await this.#lookForRests();
    await this.#calls.store.close();
    return { outcome: outcome.outcome, violations };
  }

  #hold(): void {
    if (this.#witness.phase !== 'before') return;
    this.#witness.phase = 'asking';
    const sends = this.#calls.all.length;
    const { signal } = this.#caller;
    const { waitSeconds } = this.#schedule;
    const holding = this.#subject.hold(RUN, { waitSeconds, signal }, (lease) => {
      // Who never asks for the signal gets the same result.
      this.#witness.began(lease, this.#schedule.seed % 10 !== 0);
      return new Promise((resolve, reject) => {
        const { work } = this.#schedule;
        this.#endWork = () => (work === 'throws' ? reject(WORK_ERROR) : resolve(RESULT));
      }).then((value) => {
        if (this.#schedule.work === 'checks') lease.assertHeld();
        return value;
      });
    });
    holding.then(
      (value) => this.#settle({ value }),
      (error: unknown) => this.#settle({ error }),
    );
    if ((signal.aborted || this.#closing !== null) && this.#calls.all.length > sends) {
      this.#witness.violate('C12', 'something was sent though the signal had aborted before');
    }
  }

  #settle(settled: { readonly value?: unknown; readonly error?: unknown }): void {
    this.#settled = settled;
    if (this.#witness.phase === 'asking') this.#witness.isGivenUp = true;
    if (this.#witness.phase === 'working') this.#witness.violate('C9', 'the hold settles before its work');
  }

  async #takeCall({ method, number, part }: Exclude<Event, string>): Promise<void> {
    const { phase } = this.#witness;
    const isComing =
      (method === 'renew' && phase === 'working' && this.#witness.believes()) ||
      (method === 'release' && phase === 'worked' && this.#settled === null);
    // Time passes until it is sent, though not up to the deadline.
    const until = this.#clock.monotonicSeconds() + LONGEST_PAUSE_SECONDS;
    while (isComing && this.#calls.of(method, number) === undefined) {
      const left = method === 'renew' ? this.#witness.left() - 0.001 : Infinity;
      if (!(await this.#clock.step(Math.min(left, until - this.#clock.monotonicSeconds())))) break;
      if (this.#witness.unnoticedSince !== null) await this.#look();
    }
    const call = this.#calls.of(method, number);
    if (call === undefined) return;
    const { latencySeconds } = this.#schedule;
    const isAwake = this.#witness.unnoticedSince === null;
    if (isAwake && this.#witness.left() > latencySeconds) await this.#pass(latencySeconds);
    if (part === 'effect') await this.#calls.apply(call);
    else await this.#calls.answer(call);
  }

  /** Until then no further renewal gets an answer. */
  async #comeToDeadline(): Promise<void> {
    const left = this.#witness.left();
    if (left <= 0) return;
    const { deadline: how } = this.#schedule;
    // Requests go by timers: with an ask on its way only a stall comes so far.
    if (how === 'timers' && this.#witness.phase !== 'asking') {
      const { others } = this.#calls;
      const renewals = this.#calls.store.count('renew');
      const waits = this.#witness.phase === 'working' && this.#witness.believes();
      if (others === 'answered') this.#calls.others = 'away';
      await this.#clock.advance(left + 1e-5);
      this.#calls.others = others;
      if (waits && left > 20 && this.#calls.store.count('renew') < renewals + 2) {
        this.#witness.violate('C6', 'a renewal without success was not repeated');
      }
      return;
    }
    this.#witness.unnoticedSince = this.#clock.monotonicSeconds() + (how === 'sleep' ? 0 : left);
    if (how === 'sleep') this.#clock.suspend(left + 1e-9);
    else this.#clock.block(left + (this.#schedule.seed % 3) * 1e-3);
  }

  /** Gets the run if it is free, which it is not before the deadline unless it was taken away. */
  async #rival(): Promise<void> {
    if (this.#calls.all.some(({ fate, isApplied }) => fate === 'refused' && isApplied)) return;
    if ((await this.#calls.rival()) && this.#witness.phase === 'working' && this.#witness.believes()) {
      this.#witness.violate('C16', 'another worker was granted the run while this one believes');
    }
  }

  /** Ends the wait at once, where there is one. */
  async #giveUp(how: () => void): Promise<void> {
    const { phase } = this.#witness;
    how();
    if (phase !== 'asking' || this.#settled !== null) return;
    this.#witness.isGivenUp = true;
    await settle();
    if (this.#settled === null) this.#witness.violate('C12', 'the wait does not end at once');
  }

  #close(): void {
    this.#closing ??= this.#subject.close().catch(() => undefined);
    void this.#closing.then(() => (this.#isClosed = true));
  }

  #end(): void {
    if (this.#witness.phase !== 'working') return;
    this.#witness.ended();
    this.#endWork();
  }

  async #pass(seconds: number): Promise<void> {
    await this.#clock.advance(seconds);
    if (this.#witness.unnoticedSince !== null) await this.#look();
  }

  async #look(): Promise<void> {
    await settle();
    this.#witness.look(this.#schedule.asks);
  }

  /** It was applied, and the manager knows. An ask that was given up and comes after the grant is what nobody uses, for a ttl. */
  #isClear(call: Call): boolean {
    const isUnheard = call.isGivenUp() && (this.#schedule.obeys || this.#witness.phase === 'worked');
    return call.isAnswered && call.isApplied && call.fate !== 'unknown' && !isUnheard;
  }

  /** What is given back late has its time still. */
  async #lookForTimers(): Promise<void> {
    const { phase, toldLate } = this.#witness;
    if (phase !== 'worked' || toldLate) return;
    await this.#clock.advance(0);
    await settle();
    const { armed } = this.#clock;
    if (armed > 0) this.#witness.violate('C14', `${armed} timers are armed after the hold`);
  }

  async #lookForRests(): Promise<void> {
    const { violations, lost, lateAfter, toldLate } = this.#witness;
    const note = (isWrong: boolean, what: string): void => void (isWrong && violations.push(what));
    note(this.#clock.armed > 0, `C14: ${this.#clock.armed} timers are left`);
    const listeners = getEventListeners(this.#caller.signal, 'abort').length;
    note(listeners > 0, `C14: ${listeners} listeners are left on the caller's signal`);
    const { granted, lost: losses, released } = this.#ends;
    note(granted !== losses + released, `C4: ${granted} grants, ${losses} losses, ${released} releases`);
    const { all } = this.#calls;
    const givesBack = all.slice(lateAfter ?? 0).some(({ method }) => method === 'release');
    note(lost && lateAfter !== null && !givesBack, 'C4: a late extension was not given back');
    note(lost && !toldLate && this.#calls.store.count('release') > 0, 'C4: a lost lease was released');
    const isClear = all.every((call) => this.#isClear(call));
    const record = await this.#calls.store.inner.read(RUN);
    const isHeld = record?.state === 'held' && record.workerId === SETTINGS.workerId;
    note(isClear && isHeld, 'C12: the run is left behind');
    const sends = all.length;
    this.#close();
    await settle();
    note(!this.#isClosed, 'C14: the manager does not close');
    note(all.length > sends, 'C10: something was sent after all had ended');
  }
}
