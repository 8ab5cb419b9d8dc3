/** Whose turn it is at the file: calls wait for its lock without stopping the event loop. */
import { isBusy } from './errors.ts';

/** Pauses between two looks at a locked file, in seconds: they double from the one to the other, jittered. */
const FIRST_PAUSE_SECONDS = 0.001;
const LONGEST_PAUSE_SECONDS = 0.03;
/** So long calls may follow each other before the event loop gets a turn. */
const SLICE_SECONDS = 0.005;

interface Waiting {
  /** Tries once. False when the file is locked. */
  readonly attempt: () => boolean;
  readonly giveUp: (error: unknown) => void;
  readonly deadline: number;
}

/**
 * Runs synchronous steps one at a time. A step that finds the file locked is tried again until `timeoutSeconds` are over,
 * and then fails with the driver's own error. One timer serves all who wait, so that a crowd costs no more than one.
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

  constructor(timeoutSeconds: number) {
    this.#timeoutSeconds = timeoutSeconds;
  }

  /** What the step returns. Rejects with what it throws, with the signal's reason when that aborts before its turn. */
  async take<Result>(step: () => Result, signal?: AbortSignal): Promise<Result> {
    signal?.throwIfAborted();
    if (this.#sliceIsOver()) return this.#wait(step, 0, signal);
    try {
      return step();
    } catch (error) {
      if (!isBusy(error)) throw error;
      this.#busy = error;
      return this.#wait(step, this.#nextPauseSeconds(), signal);
    }
  }

  /** Rejects whoever waits. */
  end(reason: unknown): void {
    for (const waiting of this.#waiting) waiting.giveUp(reason);
  }

  #rest(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#pauseSeconds = FIRST_PAUSE_SECONDS;
  }

  #wait<Result>(step: () => Result, pauseSeconds: number, signal?: AbortSignal): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      const done = (): void => {
        signal?.removeEventListener('abort', onAbort);
        this.#waiting.delete(waiting);
        if (this.#waiting.size === 0) this.#rest();
      };
      const giveUp = (error: unknown): void => {
        done();
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- a signal's reason is handed on as it is
        reject(error);
      };
      const onAbort = (): void => giveUp(signal?.reason);
      const attempt = (): boolean => {
        try {
          resolve(step());
          done();
        } catch (error) {
          if (isBusy(error)) {
            this.#busy = error;
            return false;
          }
          giveUp(error);
        }
        return true;
      };
      const waiting: Waiting = { attempt, giveUp, deadline: performance.now() + this.#timeoutSeconds * 1000 };
      signal?.addEventListener('abort', onAbort);
      this.#waiting.add(waiting);
      this.#arm(pauseSeconds);
    });
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
      if (!waiting.attempt()) {
        this.#stillLocked();
        return;
      }
      this.#pauseSeconds = FIRST_PAUSE_SECONDS;
    }
  }

  #stillLocked(): void {
    const now = performance.now();
    for (const waiting of this.#waiting) {
      if (waiting.deadline <= now) waiting.giveUp(this.#busy);
    }
    if (this.#waiting.size > 0) this.#arm(this.#nextPauseSeconds());
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
