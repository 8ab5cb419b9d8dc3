/** One call: one statement on a connection of the pool, ended by its answer, its time, its signal or the store's end. */
import { createHash } from 'node:crypto';
import { OutcomeUnknownError, StoreUnavailableError } from '../../errors.ts';
import { checkOut, giveBack, type PostgresClient, type PostgresPool } from './client.ts';
import { isOutrun, isRefusal, isUnprepared, toStoreError, type CallStage } from './errors.ts';

/** A statement with the name it is prepared under: of its own text, so that no other text ever runs under that name. */
export interface Statement {
  readonly text: string;
  readonly name?: string;
  /** Whether it changes anything: then an answer that is missing leaves the outcome unknown. */
  readonly writes: boolean;
}

/** A statement that only reads. */
export function statement(text: string): Statement {
  return { text, writes: false, name: `lessor_${createHash('sha256').update(text).digest('hex').slice(0, 24)}` };
}

/** One worker's acquisitions of one run outrun each other only while it was not theirs yet. */
const MOST_OUTRUN = 5;

export type Row = Readonly<Record<string, unknown>>;
export type Rows = readonly Row[];

export interface CallerOptions {
  readonly pool: PostgresPool;
  /** The quoted schema, for messages. */
  readonly schema: string;
  /** How long a call may take, the wait for a connection included. */
  readonly requestTimeoutSeconds: number;
  /** Whether statements are prepared under names. */
  readonly prepare: boolean;
}

export class Caller {
  readonly #pool: PostgresPool;
  readonly #schema: string;
  readonly #timeoutMs: number;
  readonly #calls = new Set<Call>();
  #prepare: boolean;
  #closed = false;

  constructor({ pool, schema, requestTimeoutSeconds, prepare }: CallerOptions) {
    this.#pool = pool;
    this.#schema = schema;
    this.#timeoutMs = Math.ceil(requestTimeoutSeconds * 1000);
    this.#prepare = prepare;
  }

  /** @throws StoreUnavailableError, OutcomeUnknownError, StateLostError, or the signal's reason when nothing was sent. */
  async run(what: Statement, values: unknown[], signal: AbortSignal | undefined): Promise<Rows> {
    this.checkOpen();
    signal?.throwIfAborted();
    for (let outrun = 0; ;) {
      const isPrepared = this.#prepare;
      try {
        return await this.#attempt(what, values, signal, isPrepared);
      } catch (error) {
        // The server had rolled it back, so that this is no second call.
        if (isPrepared && isUnprepared((error as Error).cause)) this.#prepare = false;
        else if (isOutrun((error as Error).cause) && outrun < MOST_OUTRUN) outrun += 1;
        else throw error;
      }
    }
  }

  async #attempt(
    what: Statement,
    values: unknown[],
    signal: AbortSignal | undefined,
    isPrepared: boolean,
  ): Promise<Rows> {
    const call = new Call(what.writes, this.#timeoutMs, signal, this.#schema);
    this.#calls.add(call);
    try {
      const { text, name } = what;
      return await call.run(this.#pool, isPrepared && name !== undefined ? { text, values, name } : { text, values });
    } finally {
      this.#calls.delete(call);
    }
  }

  /** @throws StoreUnavailableError after `close`. */
  checkOpen(): void {
    if (this.#closed) throw new StoreUnavailableError('The PostgreSQL store was closed');
  }

  /** Breaks off what is going on. Every later call rejects. */
  close(): void {
    this.#closed = true;
    for (const call of this.#calls) call.giveUp('the store was closed', undefined);
  }
}

/** Whoever comes first settles it: the answer, the error, or giving up. */
class Call {
  readonly #writes: boolean;
  readonly #schema: string;
  readonly #signal: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort: () => void;
  #client: PostgresClient | undefined;
  #stage: CallStage = 'connecting';
  #settled = false;
  #reject: (error: unknown) => void = () => undefined;

  constructor(writes: boolean, timeoutMs: number, signal: AbortSignal | undefined, schema: string) {
    this.#writes = writes;
    this.#schema = schema;
    this.#signal = signal;
    this.#timer = setTimeout(() => this.giveUp(`no answer in ${timeoutMs / 1000} s`, undefined), timeoutMs);
    this.#onAbort = () => this.giveUp('the caller gave up', signal?.reason);
    signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  run(pool: PostgresPool, query: Parameters<PostgresClient['query']>[0]): Promise<Rows> {
    return new Promise<Rows>((resolve, reject) => {
      this.#reject = reject;
      this.#ask(pool, query).then(
        (rows) => {
          if (this.#settle()) resolve(rows);
        },
        (error: unknown) => {
          if (this.#settle(error)) reject(toStoreError(error, this.#stage, this.#schema));
        },
      );
    });
  }

  async #ask(pool: PostgresPool, query: Parameters<PostgresClient['query']>[0]): Promise<Rows> {
    const client = await checkOut(pool);
    if (this.#settled) {
      giveBack(client, { broken: false });
      return [];
    }
    this.#client = client;
    this.#stage = this.#writes ? 'sent' : 'reading';
    return (await client.query(query)).rows;
  }

  /** Ends the call without an answer. The connection is ended with it, since the answer may still come on it. */
  giveUp(why: string, reason: unknown): void {
    const gaveUp = new Error(`PostgreSQL: ${why}`, { cause: reason });
    if (!this.#settle(gaveUp)) return;
    const asked = this.#signal?.aborted === true;
    if (this.#stage === 'connecting') {
      const unavailable = new StoreUnavailableError(`PostgreSQL could not be asked: ${why}`, { cause: gaveUp });
      this.#reject(asked ? this.#signal?.reason : unavailable);
    } else if (this.#stage === 'reading' && !asked) {
      this.#reject(new StoreUnavailableError(`PostgreSQL did not answer: ${why}`, { cause: gaveUp }));
    } else {
      this.#reject(new OutcomeUnknownError(`PostgreSQL may have acted: ${why}`, { cause: reason ?? gaveUp }));
    }
  }

  /** Whether this is the first end of the call. Gives back the connection, or ends it when it can not be trusted. */
  #settle(error?: unknown): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#onAbort);
    if (this.#client) giveBack(this.#client, { broken: error !== undefined && !isRefusal(error) });
    return true;
  }
}
