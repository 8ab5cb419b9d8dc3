import type { Clock } from '../clock.ts';

const LOOK_EVERY_SECONDS = 1;
/** Node has no shorter timer. */
const SHORTEST_SECONDS = 0.001;

/**
 * Notices what a suspension of the machine did to deadlines. Timers go by the monotonic clock, which stood still meanwhile,
 * so that each would fire as late as the machine slept; the clock since boot went on.
 *
 * It looks each second, so within a second of waking, and from then on at the deadlines themselves. One timer does for all
 * leases.
 */
export class SuspensionWatch {
  readonly #clock: Clock;
  readonly #look: () => number;
  #cancel: (() => void) | null = null;

  /** @param look - looks at every lease, and gives the seconds to the next deadline that no timer will notice. */
  constructor(clock: Clock, look: () => number) {
    this.#clock = clock;
    this.#look = look;
  }

  start(): void {
    if (this.#cancel === null) this.#arm(LOOK_EVERY_SECONDS);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  #arm(seconds: number): void {
    this.#cancel?.();
    this.#cancel = this.#clock.after(seconds, () => {
      const soonest = this.#look();
      // The look may have ended the last lease.
      if (this.#cancel !== null) this.#arm(Math.min(LOOK_EVERY_SECONDS, Math.max(SHORTEST_SECONDS, soonest)));
    });
  }
}
