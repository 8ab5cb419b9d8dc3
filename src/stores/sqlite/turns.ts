/** Whose turn it is at the file: calls wait for its lock without stopping the event loop. */
import { isBusy } from './errors.ts';
import type { Outcome } from './transactions.ts';

/** Pauses between two looks at a locked file, in seconds: they double from the one to the other, jittered. */
const FIRST_PAUSE_SECONDS = 0.001;
const LONGEST_PAUSE_SECONDS = 0.03;
/** So long calls may follow each other before the event loop gets a turn. */
const SLICE_SECONDS = 0.005;

/**
 * Runs the steps in order, in one transaction, and tells what became of the first ones, of one at least. Throws when the file
 * is locked, or no transaction began.
 */
type Together = (steps: Iterable<() => unknown>) => readonly Outcome[];

/** How a step is run that writes. */
interface Writing<Result> {
  /** The same for all who wait. */
  readonly together: Together;
  /** Finds an answer that needs no writing, while the file is locked. */
  readonly peek?: (() => Result | undefined) | undefined;
}

interface Waiting {
  readonly step: () => unknown;
  readonly writing: Writing<unknown> | undefined;
  readonly settle: (outcome: Outcome) => void;
  readonly deadline: number;
  hasPeeked: boolean;
}

/**
 * Runs synchronous steps one at a time. A step that finds the file locked is tried again until `timeoutSeconds` are over,
 * and then fails with the driver's own error. One timer serves all who wait, so that a crowd costs no more than one.
 *
 * Those that write and were asked for in one turn of the event loop share a transaction, since what costs is its end, which
 * waits for the disk. Each gets its answer after that.
 */
export class SqliteTurns {
  readonly #timeoutSeconds: number;
  readonly #waiting = new Set<Waiting>();
  #pauseSeconds = FIRST_PAUSE_SECONDS;
  /** Cancels the next look at those who wait. */
  #cancel: (() => void) | undefined;
  /** What the driver said last. */
  #busy: unknown;
  #sliceStartedAt: number | undefined;
  #servesSoon = false;

  constructor(timeoutSeconds: number) {
    this.#timeoutSeconds = timeoutSeconds;
  }

  /** What the step returns. Rejects with what it throws, with the signal's reason when that aborts before its turn. */
  async take<Result>(step: () => Result, signal?: AbortSignal): Promise<Result> {
    signal?.throwIfAborted();
    if (this.#sliceIsOver()) {
      this.#arm(0);
      return this.#wait(step, undefined, signal);
    }
    try {
      return step();
    } catch (error) {
      if (!isBusy(error)) throw error;
      this.#busy = error;
      this.#armPause();
      return this.#wait(step, undefined, signal);
    }
  }

  /** The same for a step that writes: in one transaction with the others of this turn of the event loop. */
  takeTogether<Result>(step: () => Result, writing: Writing<Result>, signal?: AbortSignal): Promise<Result> {
    const waiting = this.#wait(step, writing, signal);
    if (!this.#servesSoon) {
      this.#servesSoon = true;
      // After all promises that are settled by now, so that a crowd which was answered together asks together again.
      process.nextTick(() => {
        this.#servesSoon = false;
        this.#serve();
      });
    }
    return waiting;
  }

  /** Rejects whoever waits. */
  end(reason: unknown): void {
    for (const waiting of this.#waiting) waiting.settle({ error: reason });
  }

  #rest(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#pauseSeconds = FIRST_PAUSE_SECONDS;
  }

  #wait<Result>(step: () => Result, writing: Writing<Result> | undefined, signal?: AbortSignal): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      const settle = (outcome: Outcome): void => {
        signal?.removeEventListener('abort', onAbort);
        this.#waiting.delete(waiting);
        if (this.#waiting.size === 0) this.#rest();
        if ('value' in outcome) resolve(outcome.value as Result);
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- a signal's reason is handed on as it is
        else reject(outcome.error);
      };
      const onAbort = (): void => settle({ error: signal?.reason });
      const deadline = performance.now() + this.#timeoutSeconds * 1000;
      const waiting: Waiting = { step, writing, settle, deadline, hasPeeked: false };
      signal?.addEventListener('abort', onAbort);
      this.#waiting.add(waiting);
    });
  }

  #armPause(): void {
    if (!this.#cancel) this.#arm(this.#nextPauseSeconds());
  }

  #arm(seconds: number): void {
    if (this.#cancel) return;
    const serve = (): void => {
      this.#cancel = undefined;
      this.#serve();
    };
    // A timer is never quicker than a millisecond.
    if (seconds === 0) {
      const immediate = setImmediate(serve);
      this.#cancel = () => clearImmediate(immediate);
    } else {
      const timer = setTimeout(serve, seconds * 1000);
      this.#cancel = () => clearTimeout(timer);
    }
  }

  /** Lets those who wait try, first come first served, until the file is locked or the slice is over. */
  #serve(): void {
    for (const waiting of this.#waiting) {
      if (this.#sliceIsOver()) {
        this.#arm(0);
        return;
      }
      if (!this.#attempt(waiting)) {
        this.#stillLocked(waiting);
        return;
      }
      this.#pauseSeconds = FIRST_PAUSE_SECONDS;
    }
  }

  /** Tries once, for a writer together with the writers behind it. False when the file is locked. */
  #attempt(first: Waiting): boolean {
    const group: Waiting[] = [];
    try {
      const outcomes = first.writing?.together(this.#stepsOf(group)) ?? [{ value: first.step() }];
      outcomes.forEach((outcome, index) => (group[index] ?? first).settle(outcome));
    } catch (error) {
      if (isBusy(error)) {
        this.#busy = error;
        return false;
      }
      first.settle({ error });
    }
    return true;
  }

  /** Those of all writers that fit into the slice, of one at least. Who they are is noted in the group. */
  *#stepsOf(group: Waiting[]): Generator<() => unknown> {
    for (const waiting of this.#waiting) {
      if (!waiting.writing) continue;
      if (group.length > 0 && this.#sliceIsOver()) return;
      group.push(waiting);
      yield waiting.step;
    }
  }

  #stillLocked(first: Waiting): void {
    first.hasPeeked = false;
    for (const waiting of this.#waiting) {
      if (this.#sliceIsOver()) break;
      if (!waiting.hasPeeked) this.#peek(waiting);
    }
    const now = performance.now();
    for (const waiting of this.#waiting) {
      if (waiting.deadline <= now) waiting.settle({ error: this.#busy });
    }
    if (this.#waiting.size > 0) this.#armPause();
  }

  #peek(waiting: Waiting): void {
    waiting.hasPeeked = true;
    try {
      const value = waiting.writing?.peek?.();
      if (value !== undefined) waiting.settle({ value });
    } catch (error) {
      if (!isBusy(error)) waiting.settle({ error });
    }
  }

  #nextPauseSeconds(): number {
    const seconds = this.#pauseSeconds;
    this.#pauseSeconds = Math.min(LONGEST_PAUSE_SECONDS, seconds * 2);
    return seconds * (0.5 + Math.random() / 2);
  }

  /** Whether this turn of the event loop has seen enough calls. */
  #sliceIsOver(): boolean {
    const now = performance.now();
    if (this.#sliceStartedAt === undefined) {
      this.#sliceStartedAt = now;
      setImmediate(() => {
        this.#sliceStartedAt = undefined;
      });
    }
    return now - this.#sliceStartedAt >= SLICE_SECONDS * 1000;
  }
}
