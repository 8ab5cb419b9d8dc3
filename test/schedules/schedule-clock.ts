import type { Clock } from '../../src/clock.ts';

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/**
 * A worker's clocks, moved by a schedule. One turn of the event loop for every timer and none where nothing fires, since
 * there are tens of thousands of schedules.
 */
export class ScheduleClock implements Clock {
  #monotonic = 1000;
  #boot = 50_000;
  readonly #timers = new Set<Timer>();

  monotonicSeconds(): number {
    return this.#monotonic;
  }

  bootSeconds(): number {
    return this.#boot;
  }

  after(seconds: number, callback: () => void): () => void {
    const timer = { at: this.#monotonic + seconds, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  get armed(): number {
    return this.#timers.size;
  }

  /** Time passes: every timer fires at its moment, and what follows from it happens before the next one. */
  async advance(seconds: number): Promise<void> {
    const until = this.#monotonic + seconds;
    for (let timer = this.#next(); timer !== undefined && timer.at <= until; timer = this.#next()) {
      await this.#fire(timer);
    }
    this.block(until - this.#monotonic);
  }

  /** The next timer fires, if it comes within so many seconds. */
  async step(seconds: number): Promise<boolean> {
    const timer = this.#next();
    if (timer === undefined || timer.at > this.#monotonic + seconds) return false;
    await this.#fire(timer);
    return true;
  }

  /** The event loop is blocked: time passes and no timer fires. */
  block(seconds: number): void {
    if (seconds <= 0) return;
    this.#monotonic += seconds;
    this.#boot += seconds;
  }

  /** The machine sleeps: only the clock since boot goes on. */
  suspend(seconds: number): void {
    this.#boot += seconds;
  }

  #next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) if (first === undefined || timer.at < first.at) first = timer;
    return first;
  }

  async #fire(timer: Timer): Promise<void> {
    this.block(timer.at - this.#monotonic);
    this.#timers.delete(timer);
    timer.callback();
    await settle();
  }
}

/** Until everything that needs no time has happened. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
