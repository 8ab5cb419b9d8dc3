/** Virtual time for several machines: one queue of what is to happen, in the order of the true time, which nobody can read. */
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../src/clock.ts';
import { randomOf } from '../support/random.ts';

interface Happening {
  readonly at: number;
  readonly order: number;
  readonly act: () => void;
}

export class World {
  /** The true time, in seconds. */
  now = 0;
  /** What has happened so far. */
  happened = 0;
  readonly #random: () => number;
  #queue: Happening[] = [];
  #order = 0;

  constructor(seed: number) {
    this.#random = randomOf(seed);
  }

  /** From 0 to below 1. */
  random(): number {
    return this.#random();
  }

  chance(share: number): boolean {
    return this.#random() < share;
  }

  between(least: number, most: number): number {
    return least + (most - least) * this.#random();
  }

  pick<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.#random() * values.length)]!;
  }

  /** Of two things at one moment either may come first, by chance. */
  at(time: number, act: () => void): void {
    const happening = { at: Math.max(time, this.now), order: this.chance(0.5) ? ++this.#order : -++this.#order, act };
    this.#queue.push(happening);
  }

  after(seconds: number, act: () => void): void {
    this.at(this.now + seconds, act);
  }

  /** One thing after the other. What follows from each without time comes before the next. */
  async run(until: number): Promise<void> {
    await setImmediate();
    for (let next = this.#take(until); next !== undefined; next = this.#take(until)) {
      this.now = next.at;
      this.happened += 1;
      next.act();
      await setImmediate();
    }
    this.now = until;
  }

  #take(until: number): Happening | undefined {
    let first: Happening | undefined;
    for (const each of this.#queue) {
      if (each.at > until) continue;
      if (first === undefined || each.at < first.at || (each.at === first.at && each.order < first.order)) first = each;
    }
    if (first !== undefined) this.#queue = this.#queue.filter((each) => each !== first);
    return first;
  }
}

/** A worker's machine and process: its clocks go at a rate of their own, it may be stopped, suspended or killed. */
export class Machine implements Clock {
  readonly #world: World;
  readonly #rate: number;
  readonly #monotonicStart: number;
  readonly #bootStart: number;
  #suspended = 0;
  #stoppedUntil = 0;
  isDead = false;
  readonly #timers = new Set<object>();

  constructor(world: World, rate: number) {
    this.#world = world;
    this.#rate = rate;
    this.#monotonicStart = world.between(0, 1e6);
    this.#bootStart = world.between(0, 1e8);
  }

  monotonicSeconds(): number {
    return this.#monotonicStart + this.#world.now * this.#rate - this.#suspended;
  }

  /** In steps of 0.01, as the system has it. */
  bootSeconds(): number {
    return Math.floor((this.#bootStart + this.#world.now * this.#rate) * 100) / 100;
  }

  /** Timers go by the monotonic clock, and are late at times. */
  after(seconds: number, callback: () => void): () => void {
    const timer = {};
    this.#timers.add(timer);
    const due = this.monotonicSeconds() + Math.max(0, seconds);
    const fire = (): void => {
      if (!this.#timers.has(timer)) return;
      const early = due - this.monotonicSeconds();
      if (early > 1e-9) return this.#world.after(early / this.#rate, () => this.act(fire));
      this.#timers.delete(timer);
      callback();
    };
    const late = this.#world.chance(0.2) ? this.#world.between(0, 0.05) : 0;
    this.#world.after(Math.max(0, seconds) / this.#rate + late, () => this.act(fire));
    return () => this.#timers.delete(timer);
  }

  get armed(): number {
    return this.#timers.size;
  }

  get isRunning(): boolean {
    return !this.isDead && this.#world.now >= this.#stoppedUntil;
  }

  /** Does it now, when the process goes on, or never. */
  act(what: () => void): void {
    if (this.isDead) return;
    if (this.isRunning) what();
    else this.#world.at(this.#stoppedUntil, () => this.act(what));
  }

  /** The process is stopped, its clocks go on. */
  stop(seconds: number): void {
    this.#stoppedUntil = Math.max(this.#stoppedUntil, this.#world.now + seconds);
  }

  /** The machine sleeps: nothing runs, and only the clock since boot goes on. */
  suspend(seconds: number): void {
    this.#suspended += seconds * this.#rate;
    this.stop(seconds);
  }
}
