/** One script per call, sent once and answered within its time, or the error that says what is known. */
import { OutcomeUnknownError, StoreUnavailableError } from '../../errors.ts';
import type { CallOptions } from '../store.ts';
import type { RedisConnection } from './connection.ts';
import { Deadlines } from './deadlines.ts';
import { isNoScript, storeError } from './failures.ts';
import type { Script } from './scripts.ts';

export interface Call {
  readonly script: Script;
  /** The first decides the node; on a cluster all lie in one slot. */
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** Whether it can change anything. */
  readonly writes: boolean;
}

export class RedisCalls {
  readonly #connection: RedisConnection;
  readonly #timeoutSeconds: number;
  readonly #deadlines = new Deadlines();

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
      const cause = this.#connection.failure();
      const message = `Redis was not connected within ${this.#timeoutSeconds} s`;
      return new StoreUnavailableError(cause ? `${message}: ${cause.message}` : message, { cause });
    };
    return this.#inTime(this.#connection.untilReady(), {
      signal,
      seconds: this.#timeoutSeconds,
      late: notInTime,
      aborted: (reason) => reason,
      failed: (error) => error,
    });
  }

  close(): void {
    this.#deadlines.close();
  }

  /** The command cannot be taken back once it was sent. */
  #answer(call: Call, signal: AbortSignal | undefined, seconds: number): Promise<unknown> {
    const late = `Redis did not answer within ${this.#timeoutSeconds} s`;
    return this.#inTime(this.#evaluate(call), {
      signal,
      seconds,
      late: () => (call.writes ? new OutcomeUnknownError(late) : new StoreUnavailableError(late)),
      aborted: (cause) => new OutcomeUnknownError('The call was given up before Redis answered', { cause }),
      failed: (error) => storeError(error, call.writes),
    });
  }

  /** Whatever comes first: the answer, the time or the signal. */
  #inTime<Answer>(asked: Promise<Answer>, how: Ends): Promise<Answer> {
    const { signal } = how;
    return new Promise((resolve, reject) => {
      let isOver = false;
      const end = (): void => {
        if (isOver) return;
        isOver = true;
        this.#deadlines.remove(place);
        signal?.removeEventListener('abort', onAbort);
      };
      const fail = (error: unknown): void => {
        end();
        reject(error);
      };
      const onAbort = (): void => fail(how.aborted(signal!.reason));
      const place = this.#deadlines.add(how.seconds, () => fail(how.late()));
      signal?.addEventListener('abort', onAbort);
      asked.then(
        (answer) => {
          end();
          resolve(answer);
        },
        (error: unknown) => fail(how.failed(error)),
      );
    });
  }

  /** By its digest. A server that does not know it has run nothing, and gets the whole. */
  #evaluate({ script, keys, args }: Call): Promise<unknown> {
    const rest = [String(keys.length), ...keys, ...args];
    return this.#connection.send(keys[0]!, ['evalsha', script.sha, ...rest]).catch((error: unknown) => {
      if (!isNoScript(error)) throw error;
      return this.#connection.send(keys[0]!, ['eval', script.source, ...rest]);
    });
  }
}

/** What a call rejects with when something else comes before its answer. */
interface Ends {
  readonly signal: AbortSignal | undefined;
  readonly seconds: number;
  readonly late: () => unknown;
  readonly aborted: (reason: unknown) => unknown;
  readonly failed: (error: unknown) => unknown;
}
