/** Every exit code of `lessor`, in one place. Any other code of `lessor run` is the command's own. */
import { constants } from 'node:os';

/** Where sysexits.h has a word for it, its number is used. */
export const exitCodes = {
  ok: 0,
  /** `show` and `release`: the run was never leased, or nobody has it. */
  nothing: 1,
  /** The arguments make no sense. Nothing was asked of the store. */
  usage: 64,
  /** The store could not be asked, or did not answer. */
  storeUnavailable: 69,
  /** A mistake in lessor itself. */
  internal: 70,
  /** The output could not be written: a full disk. */
  notWritten: 74,
  /** Another worker has the run, still so after `--wait`, or at once with `--try`. */
  held: 75,
  /** The lease was lost, or about to be, while the command ran. The command was ended. */
  lost: 79,
  /** The command was found and could not be started. */
  notExecutable: 126,
  /** The command was not found. */
  notFound: 127,
} as const;

/** What a shell reports for a command that a signal ended: 128 and the signal's number. */
export function signalExitCode(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}
