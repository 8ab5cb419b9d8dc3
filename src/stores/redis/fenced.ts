import { LeaseLostError } from '../../errors.ts';
import type { LeaseRef } from '../../lease.ts';
import { checkObject, checkString, rangeError } from '../../options.ts';
import type { CallOptions } from '../store.ts';
import { answerOf, lossOf } from './answers.ts';
import { EXEC_FENCED, MOST_WORDS } from './fence-scripts.ts';
import type { RedisKeys } from './keys.ts';
import { bucketOf, hashTag } from './keys.ts';
import type { MarkedCalls } from './marked-calls.ts';

/** A Redis command and its words, as `['HSET', 'job:42', 'status', 'done']`. */
export type RedisCommand = readonly [name: string, ...words: (string | number)[]];

/** Of all commands of a call, with the keys that they touch: clients pass them as the arguments of one function. */
const MOST_ARGUMENTS = 50_000;

/** What fenced commands touch, and how the call may be given up. */
export interface FencedExecOptions extends CallOptions {
  /** The keys that the commands touch. @default the first word after each command's name */
  readonly keys?: readonly string[] | undefined;
}

/** Commands of the user's, run under one lease. */
export class FencedCommands {
  readonly #lease: LeaseRef;
  readonly #keys: RedisKeys;
  readonly #calls: MarkedCalls;

  /** @internal */
  constructor(lease: LeaseRef, keys: RedisKeys, calls: MarkedCalls) {
    this.#lease = lease;
    this.#keys = keys;
    this.#calls = calls;
  }

  /**
   * Runs the commands in one atomic step, if the lease is still its run's newest, and gives their results in order. As with
   * MULTI, a command that fails (its result is an Error) takes nothing of the others back.
   *
   * The results come through Lua, in which integers above 2^53 are rounded. On a cluster every key must lie in the run's
   * slot: put the store's `hashTag(runId)` into its name.
   *
   * @throws RangeError for a command of more than 7,000 words, or some 50,000 in all: share them out. Nothing was sent.
   * @throws LeaseLostError when the lease is older, released or revoked. No command ran. Expiry alone refuses nothing.
   * @throws OutcomeUnknownError when no answer came: read again before deciding.
   */
  async exec(commands: readonly RedisCommand[], options: FencedExecOptions = {}): Promise<unknown[]> {
    checkCommands(commands);
    checkObject('options', options);
    options.keys?.forEach((key, index) => checkString(`options.keys[${index}]`, key));
    const { runId, workerId, fencingToken, acquisitionId } = this.#lease;
    const touched = options.keys ?? keysOf(commands);
    const keys = [this.#keys.lease(runId), ...new Set(touched)];
    const args: string[] = [];
    for (const command of commands) args.push(String(command.length), ...command.map(String));
    if (args.length + keys.length > MOST_ARGUMENTS) {
      throw new RangeError(
        `Expected \`commands\` to have at most some ${MOST_ARGUMENTS} words in all, got ${args.length}`,
      );
    }
    const call = { bucket: bucketOf(runId), keys, args: [workerId, String(fencingToken), acquisitionId, ...args] };
    let reply;
    try {
      reply = await this.#calls.send<unknown>(EXEC_FENCED, call, true, options);
    } catch (error) {
      throw this.#inAnotherSlot(error, touched) ?? error;
    }
    if (!Array.isArray(reply)) return [reply];
    const [status, results, failed = []] = reply as [status: unknown, results: unknown[], failed?: readonly unknown[]];
    if (String(status) === 'refused') throw new LeaseLostError(this.#lease, lossOf(this.#lease, answerOf(reply[2])));
    for (const place of failed) results[Number(place) - 1] = new Error(String(results[Number(place) - 1]));
    return results;
  }

  #inAnotherSlot(error: unknown, touched: readonly string[]): RangeError | undefined {
    const cause = error instanceof Error ? error.cause : undefined;
    if (!(cause instanceof Error && cause.message.startsWith('CROSSSLOT'))) return undefined;
    const tag = hashTag(this.#lease.runId);
    return rangeError(
      'commands',
      `to touch keys in the run's slot of the cluster, with ${tag} in their names`,
      touched,
    );
  }
}

/** The first word after each command's name, where there is one. */
function keysOf(commands: readonly RedisCommand[]): string[] {
  const keys = [];
  for (const [, key] of commands) if (key !== undefined) keys.push(String(key));
  return keys;
}

function checkCommands(commands: readonly RedisCommand[]): void {
  if (!Array.isArray(commands) || commands.length === 0)
    throw rangeError('commands', 'to be a list of commands', commands);
  commands.forEach((command: unknown, index) => {
    if (!Array.isArray(command) || command.length === 0) {
      throw rangeError(`commands[${index}]`, "to be a command and its words, as ['SET', 'key', 'value']", command);
    }
    checkString(`commands[${index}][0]`, command[0]);
    for (const word of command) {
      if (typeof word !== 'string' && !Number.isFinite(word))
        throw rangeError(`commands[${index}]`, 'to be made of strings and finite numbers', command);
    }
    if (command.length > MOST_WORDS) {
      throw new RangeError(
        `Expected \`commands[${index}]\` to have at most ${MOST_WORDS} words, got ${command.length}`,
      );
    }
  });
}
