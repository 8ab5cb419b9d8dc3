/** One script per call, sent once and answered within its time, or the error that says what is known. */
import { OutcomeUnknownError, StoreUnavailableError } from '../../errors.ts';
import type { CallOptions } from '../store.ts';
import type { RedisConnection } from './connection.ts';
import { Deadlines } from './deadlines.ts';
import { isNoScript, storeError } from './failures.ts';
import type { Script } from './scripts.ts';

export interface Call {
  readonly script: Script;
  /** What follows the script, see {@link operandsOf}. */
  readonly operands: readonly string[];
  /** Whether it can change anything. */
  readonly writes: boolean;
}

/** The number of keys, the keys, the arguments. The first key decides the node; on a cluster all lie in one slot. */
export function operandsOf(keys: readonly string[], args: readonly string[]): readonly string[] {
  return [String(keys.length), ...keys, ...args];
}

export class RedisCalls {
  readonly #connection: RedisConnection;
  readonly #timeoutSeconds: number;
  readonly #deadlines = new Deadlines();
  #isClosed = false;

  constructor(connection: RedisConnection, timeoutSeconds: number) {
    this.#connection = connection;
    this.#timeoutSeconds = timeoutSeconds;
  }

  /** What the script returned. A connection that is being restored is waited for, within the time of the call. */
  run(call: Call, { signal }: CallOptions = {}): Promise<unknown> {
    if (this.#connection.isReady()) return this.#answer(call, signal, this.#timeoutSeconds);
    const deadline = performance.now() + this.#timeoutSeconds * 1000;
    return this.untilReady(signal).then(() => this.#answer(call, signal, (deadline - performance.now()) / 1000));
  }

  /** Nothing was sent when it rejects: with `StoreUnavailableError`, or with the signal's reason. */
  untilReady(signal?: AbortSignal): Promise<void> {
    const notInTime = (): StoreUnavailableError => {
      if (this.#isClosed) return new StoreUnavailableError('The Redis store was closed');
      const cause = this.#connection.failure();
      const message = `Redis was not connected within ${this.#timeoutSeconds} s`;
      return new StoreUnavailableError(cause ? `${message}: ${cause.message}` : message, { cause });
    };
    return new Promise((resolve, reject) => {
      const ending = new Ending(this.#deadlines, signal, this.#timeoutSeconds, {
        late: () => reject(notInTime()),
        aborted: () => reject(signal!.reason),
      });
      this.#connection.untilReady().then(
        () => ending.isFirst() && resolve(),
        (error: unknown) => ending.isFirst() && reject(error),
      );
    });
  }

  /** Whoever still waits is told so. */
  close(): void {
    this.#isClosed = true;
    this.#deadlines.close();
  }

  /** The command cannot be taken back once it was sent. */
  #answer(call: Call, signal: AbortSignal | undefined, seconds: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const ending = new Ending(this.#deadlines, signal, seconds, {
        late: () => reject(this.#late(call)),
        aborted: () =>
          reject(new OutcomeUnknownError('The call was given up before Redis answered', { cause: signal!.reason })),
      });
      const onAnswer = (reply: unknown): void => void (ending.isFirst() && resolve(reply));
      const onError = (error: unknown): void => void (ending.isFirst() && reject(storeError(error, call.writes)));
      const { script, operands } = call;
      this.#send(['evalsha', script.sha, ...operands]).then(onAnswer, (error: unknown) => {
        // A server that does not know the digest has run nothing, and gets the whole.
        if (!isNoScript(error)) onError(error);
        else this.#send(['eval', script.source, ...operands]).then(onAnswer, onError);
      });
    });
  }

  #late({ writes }: Call): OutcomeUnknownError | StoreUnavailableError {
    const late = this.#isClosed
      ? 'The Redis store was closed before Redis answered'
      : `Redis did not answer within ${this.#timeoutSeconds} s`;
    return writes ? new OutcomeUnknownError(late) : new StoreUnavailableError(late);
  }

  #send(command: readonly string[]): Promise<unknown> {
    return this.#connection.send(command[3]!, command);
  }
}

/** What happens to a call when something else comes before its answer. */
interface Ends {
  readonly late: () => void;
  readonly aborted: () => void;
}

/** Whatever comes first: the answer, the time or the signal. */
class Ending {
  readonly #deadlines: Deadlines;
  readonly #signal: AbortSignal | undefined;
  readonly #place: number;
  readonly #onAbort: (() => void) | undefined;
  #isOver = false;

  constructor(deadlines: Deadlines, signal: AbortSignal | undefined, seconds: number, { late, aborted }: Ends) {
    this.#deadlines = deadlines;
    this.#signal = signal;
    this.#place = deadlines.add(seconds, () => this.isFirst() && late());
    if (signal === undefined) return;
    this.#onAbort = () => this.isFirst() && aborted();
    signal.addEventListener('abort', this.#onAbort);
  }

  /** Whether nothing came before. Only the first who asks hears yes. */
  isFirst(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#deadlines.remove(this.#place);
    if (this.#onAbort) this.#signal?.removeEventListener('abort', this.#onAbort);
    return true;
  }
}
