/** The injected clock in the shape that xstate asks for: milliseconds, any length, and never early. */
import type { Clock } from '../clock.ts';
import { MAX_TIMER_SECONDS } from '../clock.ts';

/** Node's timers may fire a fraction of a millisecond early, and sums of fractions differ in their last digits. */
const DUE_WITHIN_SECONDS = 1e-6;

export interface ActorClock {
  setTimeout(callback: () => void, milliseconds: number): LongTimer;
  clearTimeout(timer: LongTimer | undefined): void;
}

export function actorClock(clock: Clock): ActorClock {
  return {
    setTimeout: (callback, milliseconds) => new LongTimer(clock, milliseconds / 1000, callback),
    clearTimeout: (timer) => timer?.cancel(),
  };
}

/** A timer that is cut at the length that Node bears, and armed again until its time has come. */
export class LongTimer {
  readonly #clock: Clock;
  readonly #dueAt: number;
  readonly #callback: () => void;
  #cancel: () => void;

  constructor(clock: Clock, seconds: number, callback: () => void) {
    this.#clock = clock;
    this.#dueAt = clock.monotonicSeconds() + seconds;
    this.#callback = callback;
    this.#cancel = this.#arm(seconds);
  }

  cancel(): void {
    this.#cancel();
  }

  #arm(seconds: number): () => void {
    return this.#clock.after(Math.min(seconds, MAX_TIMER_SECONDS), () => {
      const left = this.#dueAt - this.#clock.monotonicSeconds();
      if (left > DUE_WITHIN_SECONDS) this.#cancel = this.#arm(left);
      else this.#callback();
    });
  }
}
