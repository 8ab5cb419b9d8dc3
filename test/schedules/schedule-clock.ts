import { VirtualClock } from '../manager/virtual-clock.ts';

/**
 * The clocks of one schedule, which may also go from one timer to the next. One turn of the event loop for every timer and
 * none where nothing fires, since there are tens of thousands of schedules.
 */
export class ScheduleClock extends VirtualClock {
  override async advance(seconds: number): Promise<void> {
    const until = this.monotonicSeconds() + seconds;
    while (await this.#stepUntil(until));
    this.block(until - this.monotonicSeconds());
  }

  /** The next timer fires, if it comes within so many seconds. */
  step(seconds: number): Promise<boolean> {
    return this.#stepUntil(this.monotonicSeconds() + seconds);
  }

  async #stepUntil(until: number): Promise<boolean> {
    const timer = this.next();
    if (timer === undefined || timer.at > until) return false;
    this.block(timer.at - this.monotonicSeconds());
    this.fire(timer);
    await settle();
    return true;
  }
}

/** Until everything that needs no time has happened. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
