/**
 * The moments at which calls give up, with one timer for all of them: a timer for each costs more than the rest of a call.
 * It keeps no process alive, since the connection does while it waits for an answer.
 */
interface Waiting {
  readonly deadline: number;
  readonly giveUp: () => void;
}

export class Deadlines {
  /** Places are used again. A Set that is added to and deleted from all the time keeps what was deleted for the collector. */
  readonly #places: (Waiting | undefined)[] = [];
  readonly #free: number[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** When the timer fires. */
  #next = Infinity;

  /** @param seconds - from now on. Returns the place, to be given up in time. */
  add(seconds: number, giveUp: () => void): number {
    const place = this.#free.pop() ?? this.#places.length;
    const deadline = performance.now() + seconds * 1000;
    this.#places[place] = { deadline, giveUp };
    if (deadline < this.#next) this.#arm(deadline);
    return place;
  }

  remove(place: number): void {
    this.#places[place] = undefined;
    this.#free.push(place);
  }

  /** Whoever still waits gives up. */
  close(): void {
    clearTimeout(this.#timer);
    this.#next = Infinity;
    for (const waiting of [...this.#places]) waiting?.giveUp();
  }

  #arm(deadline: number): void {
    clearTimeout(this.#timer);
    this.#next = deadline;
    this.#timer = setTimeout(() => this.#look(), Math.max(1, Math.ceil(deadline - performance.now())));
    this.#timer.unref();
  }

  /** The timer was armed for a call that may long be answered: it looks, and is armed for what is left. */
  #look(): void {
    this.#next = Infinity;
    const now = performance.now();
    let next = Infinity;
    for (const waiting of [...this.#places]) {
      if (waiting === undefined) continue;
      if (waiting.deadline <= now) waiting.giveUp();
      else next = Math.min(next, waiting.deadline);
    }
    if (next < this.#next) this.#arm(next);
  }
}
