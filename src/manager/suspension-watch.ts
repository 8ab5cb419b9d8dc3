import type { Clock } from '../clock.ts';

const LOOK_EVERY_SECONDS = 1;
/** Beyond what the coarser clock cannot tell. */
const JUMP_SECONDS = 0.25;

/**
 * Notices that the machine was suspended. Timers go by the monotonic clock, which stood still meanwhile, so that each would
 * fire as late as the machine slept; the clock since boot went on. Then everybody looks at the clocks at once.
 */
export class SuspensionWatch {
  readonly #clock: Clock;
  readonly #onSuspension: () => void;
  #cancel: (() => void) | null = null;
  /** How far the clocks were apart when they were last read. Kept between holds: an old reading can only find too much. */
  #offset: number;

  constructor(clock: Clock, onSuspension: () => void) {
    this.#clock = clock;
    this.#onSuspension = onSuspension;
    this.#offset = this.#read();
  }

  start(): void {
    if (this.#cancel === null) this.#arm();
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  #arm(): void {
    this.#cancel = this.#clock.after(LOOK_EVERY_SECONDS, () => {
      this.#arm();
      const offset = this.#read();
      const jumped = Math.abs(offset - this.#offset) > JUMP_SECONDS;
      this.#offset = offset;
      if (jumped) this.#onSuspension();
    });
  }

  #read(): number {
    return this.#clock.bootSeconds() - this.#clock.monotonicSeconds();
  }
}
