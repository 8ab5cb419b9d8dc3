import type { Clock } from '../../src/clock.ts';

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/** A worker's clocks, moved by hand. Timers go by the monotonic one, as Node's do. */
export class VirtualClock implements Clock {
  #monotonic = 1000;
  #boot = 50_000;
  #timers = new Set<Timer>();
  /** The longest timer that was ever asked for. */
  longestSeconds = 0;

  monotonicSeconds(): number {
    return this.#monotonic;
  }

  bootSeconds(): number {
    return this.#boot;
  }

  after(seconds: number, callback: () => void): () => void {
    this.longestSeconds = Math.max(this.longestSeconds, seconds);
    const timer = { at: this.#monotonic + seconds, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** So many timers are armed. */
  get armed(): number {
    return this.#timers.size;
  }

  /** Time passes: every timer fires at its moment, and what follows from it happens before the next one. */
  async advance(seconds: number): Promise<void> {
    const until = this.#monotonic + seconds;
    await settle();
    for (let timer = this.next(); timer !== undefined && timer.at <= until; timer = this.next()) {
      this.#move(timer.at - this.#monotonic);
      this.fire(timer);
      await settle();
    }
    this.#move(until - this.#monotonic);
    await settle();
  }

  /** The event loop is blocked: time passes and no timer fires. */
  block(seconds: number): void {
    this.#move(seconds);
  }

  /** One turn of the event loop after a block: all overdue timers fire, the earliest first, microtasks between them. */
  async turn(): Promise<void> {
    const overdue = [...this.#timers].filter(({ at }) => at <= this.#monotonic).toSorted((a, b) => a.at - b.at);
    for (const timer of overdue) {
      if (!this.#timers.has(timer)) continue;
      this.fire(timer);
      await microtasks();
    }
    await settle();
  }

  /** The machine sleeps: the clock since boot goes on, the monotonic one and all timers stand still. */
  suspend(seconds: number): void {
    this.#boot += seconds;
  }

  /** Only the monotonic clock jumps. */
  leap(seconds: number): void {
    this.#monotonic += seconds;
  }

  #move(seconds: number): void {
    if (seconds <= 0) return;
    this.#monotonic += seconds;
    this.#boot += seconds;
  }

  /** The one that fires next. */
  protected next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) if (first === undefined || timer.at < first.at) first = timer;
    return first;
  }

  protected fire(timer: Timer): void {
    this.#timers.delete(timer);
    timer.callback();
  }
}

/** Until everything that needs no time has happened. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

async function microtasks(): Promise<void> {
  for (let turn = 0; turn < 30; turn += 1) await Promise.resolve();
}
