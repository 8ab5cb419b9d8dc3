/** The calls of one manager at its store: effect and answer of each come when the schedule says so. */
import type { Moment } from '../../machines/keeper.types.ts';
import { OutcomeUnknownError, StoreUnavailableError } from '../../src/errors.ts';
import { momentOf } from '../../src/manager/worker-deadline.ts';
import { ScriptedStore } from '../manager/scripted-store.ts';
import type { Fate, Method, Schedule } from './schedule.ts';
import { nameOf } from './schedule.ts';
import type { ScheduleClock } from './schedule-clock.ts';
import { TTL } from './settings.ts';

export const RUN = 'run-1';
export const RIVAL = 'worker-b';

export interface Call {
  readonly method: Method;
  readonly number: number;
  readonly fate: Fate;
  readonly sentAt: Moment;
  readonly isGivenUp: () => boolean;
  readonly apply: () => Promise<unknown>;
  readonly settle: (answer: unknown, error?: Error) => void;
  result: unknown;
  isApplied: boolean;
  /** The worker has its answer, or its client has dropped the call. */
  isAnswered: boolean;
}

/** Told of what a call comes to, before the manager is. */
export interface Witness {
  sent(call: Call): void;
  answered(call: Call): void;
}

export class Calls {
  readonly store: ScriptedStore;
  readonly all: Call[] = [];
  /** How the calls go that have no events. */
  others: Fate;
  readonly #clock: ScheduleClock;
  readonly #schedule: Schedule;
  readonly #named: ReadonlySet<string>;
  readonly #witness: Witness;

  constructor(schedule: Schedule, clock: ScheduleClock, witness: Witness) {
    this.#schedule = schedule;
    this.#clock = clock;
    this.#witness = witness;
    this.others = schedule.others;
    this.#named = new Set(schedule.events.flatMap((event) => (typeof event === 'string' ? [] : [nameOf(event)])));
    // The store goes on while the worker's machine sleeps.
    this.store = new ScriptedStore(() => clock.bootSeconds());
    for (const method of ['acquire', 'renew', 'release'] as const) {
      this.store.always(method, (apply, signal) => this.#enter(method, apply, signal));
    }
  }

  of(method: Method, number = 1): Call | undefined {
    return this.all.find((call) => call.method === method && call.number === number);
  }

  /** On its way: neither answered nor given up. */
  isOpen(method: Method): boolean {
    return this.all.some((call) => call.method === method && !call.isAnswered && !call.isGivenUp());
  }

  /** Whether another worker got the run. */
  async rival(): Promise<boolean> {
    const asked = {
      runId: RUN,
      workerId: RIVAL,
      acquisitionId: 'rival',
      ttlSeconds: TTL,
      reacquire: 'refuse',
    } as const;
    return (await this.store.inner.acquire(asked)).status === 'granted';
  }

  /** The effect at the store, once. */
  async apply(call: Call): Promise<void> {
    if (call.isApplied || call.fate === 'away') return;
    call.isApplied = true;
    if (call.fate === 'refused' && call.method === 'acquire') await this.rival();
    else if (call.fate === 'refused') await this.store.inner.revoke(RUN, { by: 'operator', reason: 'stuck' });
    call.result = await call.apply();
  }

  /** The answer at the worker, once. */
  async answer(call: Call): Promise<void> {
    if (call.isAnswered || call.fate === 'silent') return;
    // What was not on its way yet when its effect was due.
    if (call.fate !== 'unknown') await this.apply(call);
    call.isAnswered = true;
    this.#witness.answered(call);
    if (call.fate === 'away') call.settle(undefined, new StoreUnavailableError('The server is down'));
    else if (call.fate === 'unknown') call.settle(undefined, new OutcomeUnknownError('The connection was cut'));
    else call.settle(call.result);
  }

  #enter(method: Method, apply: () => Promise<unknown>, signal: AbortSignal | undefined): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const number = this.all.filter((call) => call.method === method).length + 1;
      const isNamed = this.#named.has(nameOf({ method, number }));
      const fate = isNamed ? this.#schedule.fates[nameOf({ method, number })]! : this.others;
      const settle = (answer: unknown, error?: Error): void => (error === undefined ? resolve(answer) : reject(error));
      const call: Call = {
        method,
        number,
        fate,
        sentAt: momentOf(this.#clock),
        isGivenUp: () => signal?.aborted ?? false,
        apply,
        settle,
        result: undefined,
        isApplied: false,
        isAnswered: false,
      };
      this.#witness.sent(call);
      this.all.push(call);
      if (this.#schedule.obeys) signal?.addEventListener('abort', () => this.#drop(call), { once: true });
      if (!isNamed) void this.apply(call).then(() => this.answer(call));
    });
  }

  #drop(call: Call): void {
    if (call.isAnswered) return;
    call.isAnswered = true;
    call.settle(undefined, new OutcomeUnknownError('Given up'));
  }
}
