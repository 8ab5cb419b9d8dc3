/** One request to the store, with an end: what comes of it is an answer or an error of this package. */
import type { Clock } from '../clock.ts';
import { isLeaseError, OutcomeUnknownError } from '../errors.ts';
import { LongTimer } from './actor-clock.ts';

/** Takes what is to happen when nobody waits for the answer any more. */
export type OnStop = (stop: () => void) => void;

export interface RequestOptions<Answer> {
  readonly clock: Clock;
  readonly timeoutSeconds: number;
  /** Takes how to give up early. */
  readonly onStop?: OnStop | undefined;
  /** Gets what the store may still say, at the moment at which the request is given up. */
  readonly onGivenUp?: ((sending: Promise<Answer>) => void) | undefined;
}

/**
 * Sends, and waits no longer than `timeoutSeconds`, also for a store that ignores its signal. Without an answer it rejects
 * with `OutcomeUnknownError`. What the store says afterwards disturbs nobody.
 */
export function request<Answer>(
  send: (signal: AbortSignal) => Promise<Answer>,
  { clock, timeoutSeconds, onStop, onGivenUp }: RequestOptions<Answer>,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const controller = new AbortController();
    let waiting = true;
    const giveUp = (why: string): void => {
      if (!waiting) return;
      end();
      const error = new OutcomeUnknownError(why);
      reject(error);
      onGivenUp?.(sending);
      controller.abort(error);
    };
    const end = (): void => {
      waiting = false;
      timer.cancel();
    };
    const timer = new LongTimer(clock, timeoutSeconds, () => giveUp(`No answer within ${timeoutSeconds} s`));
    onStop?.(() => giveUp('The request was given up before its answer'));
    const sending = sent(send, controller.signal);
    sending.then(
      (answer) => {
        end();
        resolve(answer);
      },
      (error: unknown) => {
        end();
        reject(error);
      },
    );
  });
}

async function sent<Answer>(send: (signal: AbortSignal) => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
  return send(signal);
}

/** What a failure tells: whether the call may have been applied, and whether the same call may succeed later. */
export function judge(error: unknown): { readonly unknown: boolean; readonly retryable: boolean } {
  if (isLeaseError(error)) return { unknown: error.code === 'OUTCOME_UNKNOWN', retryable: error.retryable };
  // A call that the store refuses to make was not made.
  if (error instanceof TypeError || error instanceof RangeError) return { unknown: false, retryable: false };
  return { unknown: true, retryable: true };
}

/** The error as one of this package, with the store's own as its cause. A refused call's stays as it is. */
export function asLeaseError(error: unknown): unknown {
  if (isLeaseError(error) || error instanceof TypeError || error instanceof RangeError) return error;
  return new OutcomeUnknownError('The store failed, and does not say whether the call was applied', { cause: error });
}
