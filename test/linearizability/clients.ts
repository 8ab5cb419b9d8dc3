/** A client of the run: what it asks goes to a store of its own, and is written down with its answer. */
import { isLeaseError } from '../../src/errors.ts';
import type { LeaseRef } from '../../src/lease.ts';
import type { FencedStore } from '../../src/session/fenced-store.ts';
import type { CallOptions } from '../../src/stores/store.ts';
import type { Answer, Ask, Call, Claim } from './history.ts';

/** What is asked of a store here. */
export type Asked = Pick<
  FencedStore,
  'acquire' | 'renew' | 'release' | 'revoke' | 'read' | 'currentFence' | 'openDocuments' | 'commitDocuments'
>;

const GIVEN_UP = new Error('The client has given up');

export class Client {
  readonly #store: Asked;
  readonly #number: number;
  readonly #runId: string;
  readonly #calls: Call[];

  /** @param calls - where its calls are written down, beside those of others. */
  constructor(store: Asked, number: number, runId: string, calls: Call[]) {
    this.#store = store;
    this.#number = number;
    this.#runId = runId;
    this.#calls = calls;
  }

  /**
   * The answer. Null when the outcome is unknown; undefined when nothing was applied, which is no part of the history: if it
   * was applied after all, the other answers have no order.
   *
   * @param patience - so many milliseconds it waits for the answer.
   */
  async ask(ask: Ask, patience?: number): Promise<Answer | null | undefined> {
    const aborting = new AbortController();
    const timer = patience === undefined ? undefined : setTimeout(() => aborting.abort(GIVEN_UP), patience);
    const at = performance.now();
    try {
      const answer = await this.#send(ask, { signal: aborting.signal });
      this.#calls.push({ client: this.#number, ask, at, end: performance.now(), answer });
      return answer;
    } catch (error) {
      const answer = told(error);
      // What only looks has no effect that could be unknown.
      if (answer === null && (ask.kind === 'read' || ask.kind === 'fence' || ask.kind === 'open')) return undefined;
      const end = answer === null ? Infinity : performance.now();
      if (answer !== undefined) this.#calls.push({ client: this.#number, ask, at, end, answer });
      return answer;
    } finally {
      clearTimeout(timer);
    }
  }

  async #send(ask: Ask, options: CallOptions): Promise<Answer> {
    const runId = this.#runId;
    switch (ask.kind) {
      case 'acquire':
        return this.#acquire(ask, options);
      case 'renew': {
        const [result] = await this.#store.renew([this.#lease(ask)], ask.ttl / 1000, options);
        return result!.status === 'lost'
          ? { is: 'lost', reason: result!.reason }
          : { is: 'renewed', until: result!.expiresAt * 1000 };
      }
      case 'release': {
        const { worker: workerId, acquisition: acquisitionId, token: fencingToken } = ask;
        const isReleased = await this.#store.release({ runId, workerId, acquisitionId, fencingToken }, options);
        return { is: isReleased ? 'released' : 'kept' };
      }
      case 'revoke': {
        const lease = await this.#store.revoke(runId, { by: 'operator', reason: 'by chance' }, options);
        return lease ? { is: 'revoked', worker: lease.workerId, token: lease.fencingToken } : { is: 'none' };
      }
      case 'read':
        return this.#read(options);
      case 'fence':
        return { is: 'fence', token: await this.#store.currentFence(runId, options) };
      case 'open': {
        const [document] = await this.#store.openDocuments(this.#request(ask), options);
        const { content = '' } = JSON.parse(document!.json) as { content?: string };
        return { is: 'opened', version: document!.version, content };
      }
      case 'commit': {
        const expected = [{ runId, version: ask.version }];
        const writes = [{ runId, json: JSON.stringify({ content: ask.content }) }];
        await this.#store.commitDocuments({ ...this.#request(ask), expected, writes }, options);
        return { is: 'committed' };
      }
    }
  }

  async #acquire(ask: Ask & { kind: 'acquire' }, options: CallOptions): Promise<Answer> {
    const { worker: workerId, acquisition: acquisitionId, ttl, extend } = ask;
    const reacquire = extend ? 'extend' : 'refuse';
    const request = { runId: this.#runId, workerId, acquisitionId, ttlSeconds: ttl / 1000, reacquire } as const;
    const result = await this.#store.acquire(request, options);
    if (result.status === 'held') {
      const { workerId: worker, fencingToken: token, retryAfterSeconds } = result;
      return { is: 'held', worker, token, remaining: retryAfterSeconds * 1000 };
    }
    const { lease, extended } = result;
    return { is: 'granted', token: lease.fencingToken, extended, until: lease.expiresAt * 1000 };
  }

  async #read(options: CallOptions): Promise<Answer> {
    const record = await this.#store.read(this.#runId, options);
    if (record === null) return { is: 'none' };
    const { state, workerId: worker, fencingToken: token, fence, remainingSeconds } = record;
    return { is: 'record', state, worker, token, fence, remaining: remainingSeconds * 1000 };
  }

  #lease({ worker: workerId, token: fencingToken, acquisition: acquisitionId }: Claim): LeaseRef {
    return { runId: this.#runId, workerId, fencingToken, acquisitionId };
  }

  #request(claim: Claim): Parameters<Asked['openDocuments']>[0] {
    return { runIds: [this.#runId], fences: [this.#lease(claim)], allowUnfenced: false };
  }
}

/** What an error says of its call: an answer, nothing (null), or that it was never applied (undefined). */
function told(error: unknown): Answer | null | undefined {
  if (error === GIVEN_UP) return undefined;
  if (!isLeaseError(error)) throw error;
  if (error.code === 'LEASE_LOST') return { is: 'lost', reason: (error as unknown as { reason: 'expired' }).reason };
  if (error.code === 'CONFLICT') return { is: 'conflict' };
  if (error.code === 'OUTCOME_UNKNOWN') return null;
  if (error.code === 'STORE_UNAVAILABLE') return undefined;
  throw error;
}
