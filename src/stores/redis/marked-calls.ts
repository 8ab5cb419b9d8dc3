/** Calls that look for the marker of their bucket first. One that finds it gone is the last: the server has forgotten. */
import { StateLostError, StoreUnavailableError } from '../../errors.ts';
import type { CallOptions } from '../store.ts';
import { answerOf, type Answer } from './answers.ts';
import { operandsOf } from './calls.ts';
import type { OpenRedis } from './open.ts';
import type { Script } from './scripts.ts';

/** The marker comes before both. */
export interface MarkedCall {
  readonly bucket: number;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

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
  async ask(script: Script, runId: string, call: MarkedCall, options?: CallOptions, writes = true): Promise<Answer> {
    const answer = answerOf(await this.#run(script, call, writes, options));
    this.#checkMarker(answer[0]);
    if (answer[0] !== 'damaged') return answer;
    throw new StoreUnavailableError(`The record of run ${JSON.stringify(runId)} in Redis is damaged: it lacks a field`);
  }

  /** A call on a bucket, with the reply as it came. */
  async send<Reply = readonly unknown[]>(
    script: Script,
    call: MarkedCall,
    writes: boolean,
    options?: CallOptions,
  ): Promise<Reply> {
    const reply = await this.#run(script, call, writes, options);
    if (Array.isArray(reply)) this.#checkMarker(reply[0]);
    return reply as Reply;
  }

  /** Calls of one script on many buckets, for a single server: the answer of each. */
  async sendMany(script: Script, calls: readonly MarkedCall[]): Promise<readonly Answer[]> {
    this.checkOpen();
    const { calls: redisCalls, keys: names, markers } = this.#redis;
    const operands = operandsOf(
      calls.flatMap(({ bucket, keys }) => [names.marker(bucket), ...keys]),
      calls.flatMap(({ bucket, args }) => [markers[bucket]!, ...args]),
    );
    const replies = (await redisCalls.run({ script, operands, writes: true })) as readonly unknown[];
    return replies.map(answerOf);
  }

  /** Every script gets the marker first, and says `gone` when it is not what this store has seen. */
  #run(script: Script, call: MarkedCall, writes: boolean, options: CallOptions | undefined): Promise<unknown> {
    this.checkOpen(options);
    const { calls, keys: names, markers } = this.#redis;
    const { bucket, keys, args } = call;
    const operands = operandsOf([names.marker(bucket), ...keys], [markers[bucket]!, ...args]);
    return calls.run({ script, operands, writes }, options);
  }

  #checkMarker(status: unknown): void {
    if (String(status) !== 'gone') return;
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
