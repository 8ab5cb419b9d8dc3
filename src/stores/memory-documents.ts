import { ConflictError, LeaseLostError, UnfencedRunError } from '../errors.ts';
import type { CommitRequest, OpenRequest, RunDocument } from '../session/documents.ts';
import type { NewestLease } from './lost-reason.ts';
import { lostReason, names } from './lost-reason.ts';

/** The runs' documents of a memory store. Each call is one step of the process, so its fence needs no row of its own. */
export class MemoryDocuments {
  readonly #documents = new Map<string, RunDocument>();
  readonly #newestLease: (runId: string) => NewestLease | undefined;

  /** @param newestLease - the newest lease of the run, also after its release. */
  constructor(newestLease: (runId: string) => NewestLease | undefined) {
    this.#newestLease = newestLease;
  }

  open(request: OpenRequest): RunDocument[] {
    this.#checkFences(request);
    return request.runIds.map((runId) => ({ ...this.#document(runId) }));
  }

  commit(request: CommitRequest): void {
    this.#checkFences(request);
    for (const { runId, version } of request.expected) {
      if (this.#document(runId).version !== version)
        throw new ConflictError(`Run ${JSON.stringify(runId)} has changed`);
    }
    for (const { runId, json } of request.writes) {
      this.#documents.set(runId, { runId, version: this.#document(runId).version + 1, json });
    }
  }

  #document(runId: string): RunDocument {
    return this.#documents.get(runId) ?? { runId, version: 0, json: '{}' };
  }

  #checkFences({ fences, runIds, allowUnfenced }: OpenRequest): void {
    for (const fence of fences) {
      const newest = this.#newestLease(fence.runId);
      if (newest === undefined || newest.released || !names(fence, newest)) {
        throw new LeaseLostError(fence, lostReason(fence, newest));
      }
    }
    if (allowUnfenced) return;
    const unfenced = runIds.find((runId) => this.#newestLease(runId) && !fences.some((fence) => fence.runId === runId));
    if (unfenced !== undefined) throw new UnfencedRunError(unfenced);
  }
}
