import { OutcomeUnknownError, StoreUnavailableError } from '../../src/errors.ts';
import type { LeaseRef } from '../../src/lease.ts';
import { MemoryStore } from '../../src/stores/memory.ts';
import type { AcquireRequest, CallOptions, LeaseStore, ReleaseRequest } from '../../src/stores/store.ts';

type Method = 'acquire' | 'renew' | 'release' | 'read';

/** How one call goes wrong: gets the real call, and the signal that gives it up. */
export type Fault = (call: () => Promise<unknown>, signal: AbortSignal | undefined) => Promise<unknown>;

/** Nothing is applied. */
export const unavailable: Fault = () => Promise.reject(new StoreUnavailableError('The server is down'));
/** Nothing is applied, and the store does not know that. */
export const unknown: Fault = () => Promise.reject(new OutcomeUnknownError('The connection was cut'));
/** Never settles, whatever its signal says. */
export const hang: Fault = () => new Promise(() => undefined);
/** Applied, but the reply gets lost: ends when the caller gives up. */
export const loseReply: Fault = async (call, signal) => {
  await call();
  return new Promise((_, reject) =>
    signal?.addEventListener('abort', () => reject(new OutcomeUnknownError('No reply'))),
  );
};
/** Applied once the gate opens, and answered then, whatever the signal says. */
export const heldUp =
  (gate: Promise<unknown>): Fault =>
  async (call) => {
    await gate;
    return call();
  };
/** Applied at once, and answered once the gate opens. */
export const answeredLate =
  (gate: Promise<unknown>): Fault =>
  async (call) => {
    const answer = await call();
    await gate;
    return answer;
  };
/** Answers this, and applies nothing. */
export const answering =
  (answer: unknown): Fault =>
  () =>
    Promise.resolve(answer);

/** A memory store whose calls are counted and can be made to go wrong. */
export class ScriptedStore implements LeaseStore {
  readonly durability = { survives: 'nothing', warnings: [] } as const;
  readonly inner: MemoryStore;
  readonly calls: { readonly method: Method; readonly at: number; readonly argument: unknown }[] = [];
  readonly changes?: NonNullable<LeaseStore['changes']>;
  readonly #now: () => number;
  readonly #next: Record<Method, Fault[]> = { acquire: [], renew: [], release: [], read: [] };
  readonly #always: Partial<Record<Method, Fault>> = {};

  constructor(now: () => number, { pushes = false } = {}) {
    this.#now = now;
    this.inner = new MemoryStore({ now });
    if (pushes) this.changes = (runIds, options) => this.inner.changes(runIds, options);
  }

  /** The next calls of the method go so, one after the other. */
  next(method: Method, ...faults: Fault[]): void {
    this.#next[method].push(...faults);
  }

  /** Every call of the method goes so, until told otherwise. */
  always(method: Method, fault?: Fault): void {
    if (fault === undefined) delete this.#always[method];
    else this.#always[method] = fault;
  }

  count(method: Method): number {
    return this.calls.filter((call) => call.method === method).length;
  }

  /** When the calls of the method were made. */
  times(method: Method): number[] {
    return this.calls.filter((call) => call.method === method).map(({ at }) => at);
  }

  acquire(request: AcquireRequest, options?: CallOptions) {
    return this.#call('acquire', request, options, () => this.inner.acquire(request));
  }

  renew(leases: readonly LeaseRef[], ttlSeconds: number, options?: CallOptions) {
    return this.#call('renew', leases, options, () => this.inner.renew(leases, ttlSeconds));
  }

  release(lease: ReleaseRequest, options?: CallOptions) {
    return this.#call('release', lease, options, () => this.inner.release(lease));
  }

  read(runId: string, options?: CallOptions) {
    return this.#call('read', runId, options, () => this.inner.read(runId));
  }

  revoke(...call: Parameters<LeaseStore['revoke']>) {
    return this.inner.revoke(...call);
  }

  list(...call: Parameters<LeaseStore['list']>) {
    return this.inner.list(...call);
  }

  currentFence(...call: Parameters<LeaseStore['currentFence']>) {
    return this.inner.currentFence(...call);
  }

  close(): Promise<void> {
    return this.inner.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #call<Answer>(
    method: Method,
    argument: unknown,
    options: CallOptions | undefined,
    call: () => Promise<Answer>,
  ): Promise<Answer> {
    this.calls.push({ method, at: this.#now(), argument });
    const fault = this.#next[method].shift() ?? this.#always[method];
    return fault === undefined ? call() : (fault(call, options?.signal) as Promise<Answer>);
  }
}
