/** So many jobs run side by side. */
const CONCURRENCY = 16;

/**
 * Jobs that were named ahead. Side by side, all of them start with the first question for a result, in order: on a clock
 * that has to be waited for most of them only wait. Else each runs when it is asked for.
 */
export class Batch {
  readonly #sideBySide: boolean;
  readonly #jobs = new Map<string, () => Promise<void>>();
  readonly #results = new Map<string, Promise<void>>();

  constructor(sideBySide: boolean) {
    this.#sideBySide = sideBySide;
  }

  add(name: string, job: () => Promise<void>): void {
    this.#jobs.set(name, job);
  }

  /** Settles as the job does. */
  result(name: string): Promise<void> {
    if (!this.#sideBySide) return this.#jobs.get(name)!();
    if (this.#results.size === 0) this.#start();
    return this.#results.get(name)!;
  }

  #start(): void {
    const lanes: Promise<void>[] = Array.from({ length: CONCURRENCY }, () => Promise.resolve());
    for (const [index, [name, job]] of [...this.#jobs].entries()) {
      const lane = index % CONCURRENCY;
      const result = lanes[lane]!.then(job);
      // Whoever asks for the result gets the error. Until then it is nobody's.
      lanes[lane] = result.catch(() => undefined);
      this.#results.set(name, result);
    }
  }
}
