/** One script per call, sent once and answered within its time, or the error that says what is known. */
import { OutcomeUnknownError, StateLostError, StoreUnavailableError } from '../../errors.ts';
import type { CallOptions } from '../store.ts';
import type { RedisConnection } from './connection.ts';
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

  constructor(connection: RedisConnection, timeoutSeconds: number) {
    this.#connection = connection;
    this.#timeoutSeconds = timeoutSeconds;
  }

  /** What the script returned. A connection that is being restored is waited for, within the time of the call. */
  async run(call: Call, { signal }: CallOptions = {}): Promise<unknown> {
    if (this.#connection.isReady()) return this.#answer(call, signal, this.#timeoutSeconds);
    const deadline = performance.now() + this.#timeoutSeconds * 1000;
    await this.untilReady(signal);
    return this.#answer(call, signal, (deadline - performance.now()) / 1000);
  }

  /** Nothing was sent when it rejects: with `StoreUnavailableError`, or with the signal's reason. */
  untilReady(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        act();
      };
      const onAbort = (): void => settle(() => reject(signal!.reason));
      const onTime = (): void => {
        const cause = this.#connection.failure();
        const message = `Redis was not connected within ${this.#timeoutSeconds} s`;
        settle(() => reject(new StoreUnavailableError(cause ? `${message}: ${cause.message}` : message, { cause })));
      };
      const timer = setTimeout(onTime, this.#timeoutSeconds * 1000);
      signal?.addEventListener('abort', onAbort);
      this.#connection.untilReady().then(
        () => settle(resolve),
        (error: unknown) => settle(() => reject(error)),
      );
    });
  }

  /** Whatever comes first: the answer, the time or the signal. The command cannot be taken back then. */
  #answer(call: Call, signal: AbortSignal | undefined, seconds: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        act();
      };
      const onAbort = (): void => {
        const cause: unknown = signal!.reason;
        settle(() => reject(new OutcomeUnknownError('The call was given up before Redis answered', { cause })));
      };
      const onTime = (): void => {
        const message = `Redis did not answer within ${this.#timeoutSeconds} s`;
        settle(() => reject(call.writes ? new OutcomeUnknownError(message) : new StoreUnavailableError(message)));
      };
      const timer = setTimeout(onTime, Math.max(0, seconds) * 1000);
      signal?.addEventListener('abort', onAbort);
      this.#evaluate(call).then(
        (answer) => settle(() => resolve(answer)),
        (error: unknown) => settle(() => reject(storeError(error, call.writes))),
      );
    });
  }

  /** By its digest. A server that does not know it has run nothing, and gets the whole. */
  async #evaluate({ script, keys, args }: Call): Promise<unknown> {
    const rest = [String(keys.length), ...keys, ...args];
    try {
      return await this.#connection.send(keys[0]!, ['evalsha', script.sha, ...rest]);
    } catch (error) {
      if (!isNoScript(error)) throw error;
      return this.#connection.send(keys[0]!, ['eval', script.source, ...rest]);
    }
  }
}

/** The server no longer has the marker that this store has seen there. */
export function stateLost(): StateLostError {
  return new StateLostError(
    'Redis has forgotten leases that it had acknowledged: it was flushed, restarted without its data, or replaced by ' +
      'another. Let the work under every lease end, then open the store anew. Tokens go on rising, by the server’s clock',
  );
}
