import { OutcomeUnknownError } from '../errors.ts';
import type { CallOptions } from './store.ts';

/** From so many calls on one request for all is the quicker way. Fewer go side by side. */
const FEW = 8;

/** The two ways to ask. */
interface Asks<Request, Answer> {
  /** So many share a request at most: a longer one keeps the server, or its rows, for longer. */
  readonly most: number;
  /** One answer each, in order. It is undefined where only asking for that one alone can tell. */
  readonly many: (requests: readonly Request[]) => Promise<readonly (Answer | undefined)[]>;
  readonly one: (request: Request, options: CallOptions | undefined) => Promise<Answer>;
  /** Whether the server has refused all, for one's sake perhaps, and has done nothing: then each is asked for alone. */
  readonly isUndone?: ((error: unknown) => boolean) | undefined;
}

interface Waiting<Request, Answer> {
  readonly request: Request;
  readonly options: CallOptions | undefined;
  readonly resolve: (answer: Answer | Promise<Answer>) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Calls that come in one turn of the event loop and go to the server in one request, where there are many: what costs is
 * the round trip and the commit. Each gets its answer after that. A call that the many cannot decide, by waiting for a lock
 * for one, and the second one on the same run go by themselves, so that no run waits for another.
 */
export class Turns<Request extends { readonly runId: string }, Answer> {
  readonly #asks: Asks<Request, Answer>;
  #waiting: Waiting<Request, Answer>[] = [];

  constructor(asks: Asks<Request, Answer>) {
    this.#asks = asks;
  }

  /** Rejects with the signal's reason when that has aborted by the end of the turn, and is unknown when it does later. */
  ask(request: Request, options: CallOptions | undefined): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, options, resolve, reject });
      // After all promises that are settled by now, so that those who were answered together ask together again.
      if (this.#waiting.length === 1) process.nextTick(() => this.#send());
    });
  }

  #send(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    if (waiting.length < FEW) return waiting.forEach((one) => this.#askAlone(one));
    const together = new Map<string, Waiting<Request, Answer>>();
    for (const one of waiting) {
      const { runId } = one.request;
      if (together.has(runId) || one.options?.signal?.aborted) this.#askAlone(one);
      else together.set(runId, one);
    }
    const all = [...together.values()];
    const { most } = this.#asks;
    for (let first = 0; first < all.length; first += most) this.#askTogether(all.slice(first, first + most));
  }

  #askAlone({ request, options, resolve }: Waiting<Request, Answer>): void {
    resolve(this.#asks.one(request, options));
  }

  #askTogether(batch: readonly Waiting<Request, Answer>[]): void {
    const stopListening = batch.map(listenToSignal);
    const settleAll = (settle: (one: Waiting<Request, Answer>, index: number) => void): void => {
      for (const stop of stopListening) stop?.();
      batch.forEach((one, index) => one.options?.signal?.aborted || settle(one, index));
    };
    this.#asks.many(batch.map(({ request }) => request)).then(
      (answers) =>
        settleAll((one, index) => {
          const answer = answers[index];
          if (answer === undefined) this.#askAlone(one);
          else one.resolve(answer);
        }),
      (error: unknown) => {
        const isUndone = this.#asks.isUndone?.(error) ?? false;
        settleAll((one) => (isUndone ? this.#askAlone(one) : one.reject(error)));
      },
    );
  }
}

/** The request goes on for the others. */
function listenToSignal({
  options,
  reject,
}: Pick<Waiting<unknown, never>, 'options' | 'reject'>): (() => void) | undefined {
  const signal = options?.signal;
  if (signal === undefined) return undefined;
  const giveUp = (): void =>
    reject(new OutcomeUnknownError('The store may have acted: the caller gave up', { cause: signal.reason }));
  signal.addEventListener('abort', giveUp);
  return () => signal.removeEventListener('abort', giveUp);
}
