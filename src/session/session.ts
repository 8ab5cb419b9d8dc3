import type { LeaseRef } from '../lease.ts';
import { checkFencingToken, checkName, checkObject, checkOneOf, checkSignal, rangeError } from '../options.ts';
import { checkLeaseRef } from '../stores/requests.ts';
import type { CallOptions } from '../stores/store.ts';
import type { DocumentStore, Fence, OpenRequest } from './documents.ts';
import { RunSession } from './run-session.ts';

/** What a session is for, and under which leases it writes. */
export interface SessionOptions extends CallOptions {
  readonly workerId: string;
  /** The runs that the session reads and writes. At least one, none twice. */
  readonly runs: readonly string[];
  /**
   * The lease under which the session writes, or one for each of several runs, or the token of a one-run session's lease.
   * `'none'` says that the session is meant to write without one. Left out, only runs that were never leased are taken.
   */
  readonly fence?: LeaseRef | readonly LeaseRef[] | number | 'none' | undefined;
  /**
   * `serializable` refuses to commit when anything read has changed, `snapshot` only when anything written has.
   *
   * @default 'serializable'
   */
  readonly isolation?: Isolation | undefined;
}

/** What a commit validates, beside its fences. */
export type Isolation = 'serializable' | 'snapshot';

/**
 * Opens a fenced read-modify-write over the documents of one or several runs. Raises the fences before it reads, so it
 * waits for an older worker's write in flight and sees it.
 *
 * @throws LeaseLostError when a fence's lease is no longer its run's newest, or was released or revoked. Expiry alone
 * refuses nothing. Stop, acquire again, read again, redo.
 * @throws UnfencedRunError when a run was ever leased and `fence` does not cover it.
 * @throws TypeError or RangeError for options that make no sense, before any I/O.
 */
export async function openSession(store: DocumentStore, options: SessionOptions): Promise<Session> {
  const request = readOptions(options);
  const documents = await store.openDocuments(request, { signal: options.signal });
  return new Session(store, options, request, documents);
}

/** Reads what stood at its opening, collects writes, and commits all of them or none. Of use once: then open another. */
export class Session implements AsyncDisposable {
  readonly workerId: string;
  readonly isolation: Isolation;
  readonly #store: DocumentStore;
  readonly #request: OpenRequest;
  readonly #runs: ReadonlyMap<string, RunSession>;
  #ended: string | undefined;

  /** @internal */
  constructor(
    store: DocumentStore,
    { workerId, isolation = 'serializable' }: SessionOptions,
    request: OpenRequest,
    documents: Awaited<ReturnType<DocumentStore['openDocuments']>>,
  ) {
    this.workerId = workerId;
    this.isolation = isolation;
    this.#store = store;
    this.#request = request;
    const runSession = (document: (typeof documents)[number]) => new RunSession(document, () => this.#checkOpen());
    this.#runs = new Map(documents.map((document) => [document.runId, runSession(document)]));
  }

  /** @throws RangeError for a run that the session was not opened for. */
  run(runId: string): RunSession {
    checkName('runId', runId);
    this.#checkOpen();
    const run = this.#runs.get(runId);
    if (run === undefined) throw rangeError('runId', 'to be one of the runs that the session was opened for', runId);
    return run;
  }

  /**
   * Writes everything in one atomic step that also validates what was read and checks the leases. The session has ended
   * then, whatever came out.
   *
   * @throws LeaseLostError when a newer lease exists. Nothing was written; the same commit can never succeed.
   * @throws ConflictError when what was read has changed. Nothing was written; open a new session and redo.
   * @throws OutcomeUnknownError when no answer came. Never repeat blindly: read again and decide.
   */
  async commit(options: CallOptions = {}): Promise<void> {
    checkSignal('signal', options.signal);
    this.#checkOpen();
    this.#ended = 'has had its commit';
    const runs = [...this.#runs.values()];
    const written = runs.filter((run) => run.wasWritten);
    const validated = this.isolation === 'snapshot' ? written : runs.filter((run) => run.wasRead || run.wasWritten);
    await this.#store.commitDocuments(
      {
        ...this.#request,
        expected: validated.map(({ runId, version }) => ({ runId, version })),
        writes: written.map((run) => ({ runId: run.runId, json: run.toJson() })),
      },
      options,
    );
  }

  /** Drops the writes. Nothing was sent yet, so nothing has to be taken back. Idempotent, and harmless after a commit. */
  rollback(): void {
    this.#ended ??= 'was rolled back';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.rollback();
  }

  #checkOpen(): void {
    if (this.#ended) throw new Error(`This session ${this.#ended}: open another one`);
  }
}

function readOptions(options: SessionOptions): OpenRequest {
  checkObject('options', options);
  const { workerId, runs, fence, isolation = 'serializable', signal } = options;
  checkName('workerId', workerId);
  if (!Array.isArray(runs)) throw new TypeError(`Expected \`runs\` to be an array, got ${typeof runs}`);
  if (runs.length === 0) throw rangeError('runs', 'not to be empty', runs);
  runs.forEach((runId, index) => checkName(`runs[${index}]`, runId));
  if (new Set(runs).size < runs.length) throw rangeError('runs', 'to name no run twice', runs);
  checkOneOf('isolation', isolation, ['serializable', 'snapshot']);
  checkSignal('signal', signal);
  return { runIds: [...runs], fences: readFences(options), allowUnfenced: fence === 'none' };
}

function readFences({ workerId, runs, fence }: SessionOptions): readonly Fence[] {
  if (fence === undefined || fence === 'none') return [];
  if (typeof fence === 'number') return [tokenFence(workerId, runs, fence)];
  const leases = Array.isArray(fence) ? fence : [fence];
  if (leases.length === 0) throw rangeError('fence', "to name a lease, or to be `'none'`", leases);
  leases.forEach((lease: unknown, index) => {
    const place = Array.isArray(fence) ? `fence[${index}]` : 'fence';
    checkLeaseRef(lease, `${place}.`);
    if (!runs.includes(lease.runId)) throw rangeError(`${place}.runId`, 'to be one of `runs`', lease.runId);
    if (lease.workerId !== workerId)
      throw rangeError(`${place}.workerId`, `to be \`workerId\` '${workerId}'`, lease.workerId);
  });
  const runIds = new Set(leases.map(({ runId }) => runId));
  if (runIds.size < leases.length) throw rangeError('fence', 'to name no run twice', leases);
  return leases.map(({ runId, fencingToken, acquisitionId }) => ({ runId, workerId, fencingToken, acquisitionId }));
}

function tokenFence(workerId: string, runs: readonly string[], fencingToken: number): Fence {
  checkFencingToken('fence', fencingToken);
  const [runId, ...others] = runs;
  if (runId === undefined || others.length > 0)
    throw rangeError('fence', 'to be a lease when there are several runs', fencingToken);
  return { runId, workerId, fencingToken };
}
