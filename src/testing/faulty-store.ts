import { OutcomeUnknownError, StoreUnavailableError } from '../errors.ts';
import type { LeaseRef } from '../lease.ts';
import type {
  AcquireRequest,
  AcquireResult,
  CallOptions,
  Durability,
  LeaseRecord,
  LeaseStore,
  ListQuery,
  ReleaseRequest,
  RenewResult,
  RevokedLease,
  RevokeReason,
} from '../stores/store.ts';

/** The calls that a `FaultyStore` can spoil. */
export type FaultyCall = 'acquire' | 'renew' | 'release' | 'revoke' | 'read' | 'currentFence';

/** What becomes of one call on its way to the store and back. What is left out goes well. */
export interface Misfortune {
  /**
   * `refused`: the server cannot be reached, and the call rejects with a `StoreUnavailableError`. `lost`: the request never
   * arrives, so nothing is applied, but the caller cannot know. A promise: the request arrives when it settles.
   */
  readonly request?: 'refused' | 'lost' | Promise<unknown>;
  /** `lost`: the call was applied, and its answer never arrives. A promise: the answer arrives when it settles. */
  readonly answer?: 'lost' | Promise<unknown>;
  /** What is lost shows as silence, until the call's signal aborts, and not as an error at once. @default false */
  readonly silent?: boolean;
}

/**
 * Any store behind a bad network: requests and answers come late, get lost, or never come. For tests of what uses a store.
 *
 * A call that nothing was planned for goes through. What was lost rejects with an `OutcomeUnknownError`, as a real store's
 * call does. A request that is only late takes its effect when it arrives, also after its caller has given up.
 *
 * @example
 * const store = new FaultyStore(new MemoryStore());
 * store.meet('acquire', { answer: 'lost' }); // the next acquire: granted, but nobody hears of it
 * store.meetAlways('renew', { request: 'lost', silent: true }); // every renewal: silence
 */
export class FaultyStore implements LeaseStore {
  readonly changes?: NonNullable<LeaseStore['changes']>;
  readonly #store: LeaseStore;
  readonly #next = new Map<FaultyCall, Misfortune[]>();
  readonly #always = new Map<FaultyCall, Misfortune>();
  readonly #calls = new Map<FaultyCall, number>();

  constructor(store: LeaseStore) {
    this.#store = store;
    if (store.changes) this.changes = store.changes.bind(store);
  }

  get durability(): Durability {
    return this.#store.durability;
  }

  /** Plans for the next call of that kind that nothing is planned for yet. */
  meet(call: FaultyCall, misfortune: Misfortune): void {
    this.#next.set(call, [...(this.#next.get(call) ?? []), misfortune]);
  }

  /** Plans for every call of that kind for which `meet` did not plan. Null ends that. */
  meetAlways(call: FaultyCall, misfortune: Misfortune | null): void {
    if (misfortune === null) this.#always.delete(call);
    else this.#always.set(call, misfortune);
  }

  /** So many calls of that kind were made, whatever became of them. */
  calls(call: FaultyCall): number {
    return this.#calls.get(call) ?? 0;
  }

  acquire(request: AcquireRequest, options?: CallOptions): Promise<AcquireResult> {
    return this.#send('acquire', (given) => this.#store.acquire(request, given), options);
  }

  renew(leases: readonly LeaseRef[], ttlSeconds: number, options?: CallOptions): Promise<readonly RenewResult[]> {
    return this.#send('renew', (given) => this.#store.renew(leases, ttlSeconds, given), options);
  }

  release(lease: ReleaseRequest, options?: CallOptions): Promise<boolean> {
    return this.#send('release', (given) => this.#store.release(lease, given), options);
  }

  revoke(runId: string, why: RevokeReason, options?: CallOptions): Promise<RevokedLease | null> {
    return this.#send('revoke', (given) => this.#store.revoke(runId, why, given), options);
  }

  read(runId: string, options?: CallOptions): Promise<LeaseRecord | null> {
    return this.#send('read', (given) => this.#store.read(runId, given), options);
  }

  list(query?: ListQuery, options?: CallOptions): AsyncIterable<LeaseRecord> {
    return this.#store.list(query, options);
  }

  currentFence(runId: string, options?: CallOptions): Promise<number> {
    return this.#send('currentFence', (given) => this.#store.currentFence(runId, given), options);
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #send<Result>(
    call: FaultyCall,
    effect: (options?: CallOptions) => Promise<Result>,
    options?: CallOptions,
  ): Promise<Result> {
    this.#calls.set(call, this.calls(call) + 1);
    const misfortune = this.#next.get(call)?.shift() ?? this.#always.get(call);
    if (misfortune === undefined) return effect(options);
    options?.signal?.throwIfAborted();
    if (misfortune.request === 'refused') throw new StoreUnavailableError(`The store cannot be reached: ${call}`);
    const answer = travel(call, effect, misfortune);
    return options?.signal ? Promise.race([answer, givenUp(call, options.signal, answer)]) : answer;
  }
}

/** The call's way there and back. The store never hears of the caller's signal: what was sent is on its way. */
async function travel<Result>(
  call: FaultyCall,
  effect: () => Promise<Result>,
  { request, answer, silent = false }: Misfortune,
): Promise<Result> {
  if (request === 'lost') return silent ? silence() : Promise.reject(unknown(call));
  await request;
  const result = await effect();
  if (answer === 'lost') return silent ? silence() : Promise.reject(unknown(call));
  await answer;
  return result;
}

function silence(): Promise<never> {
  return new Promise(() => undefined);
}

/** Rejects when the caller gives up before the answer came. */
function givenUp(call: FaultyCall, signal: AbortSignal, answer: Promise<unknown>): Promise<never> {
  return new Promise((_resolve, reject) => {
    const giveUp = () => reject(unknown(call, signal.reason));
    signal.addEventListener('abort', giveUp, { once: true });
    const stop = () => signal.removeEventListener('abort', giveUp);
    answer.then(stop, stop);
  });
}

function unknown(call: FaultyCall, cause?: unknown): OutcomeUnknownError {
  return new OutcomeUnknownError(`No answer came, and the store may have applied it: ${call}`, { cause });
}
