/** Calls that look for the marker of their bucket first. One that finds it gone is the last: the server has forgotten. */
import { StateLostError, StoreUnavailableError } from '../../errors.ts';
import type { CallOptions } from '../store.ts';
import { answerOf, type Answer } from './answers.ts';
import { bucketOf } from './keys.ts';
import type { OpenRedis } from './open.ts';
import type { Script } from './scripts.ts';

export class MarkedCalls {
  readonly #redis: OpenRedis;
  #isLost = false;
  #isClosed = false;

  constructor(redis: OpenRedis) {
    this.#redis = redis;
  }

  /** @throws StoreUnavailableError after `close`, StateLostError once lost, or the reason of a signal that has aborted. */
  checkOpen(options?: CallOptions): void {
    if (this.#isClosed) throw new StoreUnavailableError('The Redis store was closed');
    if (this.#isLost) throw stateLost();
    options?.signal?.throwIfAborted();
  }

  /** A call on one run. */
  async ask(
    script: Script,
    runId: string,
    keys: readonly string[],
    args: readonly string[],
    options: CallOptions | undefined,
    writes = true,
  ): Promise<Answer> {
    const answer = answerOf(await this.send(script, bucketOf(runId), keys, args, writes, options));
    if (answer[0] !== 'damaged') return answer;
    throw new StoreUnavailableError(`The record of run ${JSON.stringify(runId)} in Redis is damaged: it lacks a field`);
  }

  /** Every script gets the marker first, and says when it is not what this store has seen. */
  async send(
    script: Script,
    bucket: number,
    keys: readonly string[],
    args: readonly string[],
    writes: boolean,
    options: CallOptions | undefined,
  ): Promise<readonly unknown[]> {
    this.checkOpen(options);
    const { calls, keys: names, markers } = this.#redis;
    const call = { script, keys: [names.marker(bucket), ...keys], args: [markers[bucket]!, ...args], writes };
    const reply = (await calls.run(call, options)) as readonly unknown[];
    if (String(reply[0]) !== 'gone') return reply;
    this.#isLost = true;
    throw stateLost();
  }

  /** Whether it was open until now. */
  close(): boolean {
    if (this.#isClosed) return false;
    this.#isClosed = true;
    this.#redis.calls.close();
    return true;
  }
}

function stateLost(): StateLostError {
  return new StateLostError(
    'Redis has forgotten leases that it had acknowledged: it was flushed, restarted without its data, or replaced by ' +
      'another. Let the work under every lease end, then open the store anew. Tokens go on rising, by its clock',
  );
}
