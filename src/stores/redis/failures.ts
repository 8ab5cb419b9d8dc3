/** What a client says, told apart: refused by the server, never sent, or sent without an answer. */
import { OutcomeUnknownError, StoreUnavailableError } from '../../errors.ts';

/** What `redis` rejects with before a command was written. `ioredis` is asked only when it is connected. */
const NEVER_SENT = new Set([
  'The client is closed',
  'The client is offline',
  'The command was aborted',
  'All the root nodes are unavailable',
]);

/** Whether the server itself answered with an error. Those begin with a word in capitals. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && /^[A-Z][A-Z0-9]{2,} /.test(error.message);
}

export function isNoScript(error: unknown): boolean {
  return isReply(error) && error.message.startsWith('NOSCRIPT');
}

/**
 * The error of a call. A script that the server refused has changed nothing, whatever the reason: out of memory, read-only,
 * loading, a key of another type, no such slot.
 *
 * @param writes - whether the call can change anything. One that only reads has no outcome to be unknown.
 */
export function storeError(error: unknown, writes: boolean): StoreUnavailableError | OutcomeUnknownError {
  const said = error instanceof Error ? error.message : String(error);
  if (isReply(error)) return new StoreUnavailableError(`Redis refused: ${said}`, { cause: error });
  if (!writes || NEVER_SENT.has(said)) {
    return new StoreUnavailableError(`Redis could not be asked: ${said}`, { cause: error });
  }
  return new OutcomeUnknownError(`Redis was asked and gave no answer: ${said}`, { cause: error });
}
