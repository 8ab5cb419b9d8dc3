/**
 * What a store offers for fenced sessions: two atomic steps over the runs' documents. A session is optimistic, so a store
 * keeps nothing open between them.
 */
import type { LeaseRef } from '../lease.ts';
import type { CallOptions } from '../stores/store.ts';

/** A lease as a fence. Without `acquisitionId` (a bare token was given) token and worker alone are compared. */
export type Fence = Omit<LeaseRef, 'acquisitionId'> & { readonly acquisitionId?: string | undefined };

/** The state of a run: the text of a JSON object. A run that nobody has written yet has `{}` and version 0. */
export interface RunDocument {
  readonly runId: string;
  /** Grows by one with every commit that writes the run. */
  readonly version: number;
  readonly json: string;
}

/** What a session is opened for. */
export interface OpenRequest {
  /** Each names one of the runs; no run twice. */
  readonly fences: readonly Fence[];
  /** Not empty, no run twice. */
  readonly runIds: readonly string[];
  /** Whether a run that was ever leased may go without a fence. */
  readonly allowUnfenced: boolean;
}

/** What a session commits, and what must still hold for that. */
export interface CommitRequest extends OpenRequest {
  /** The versions that must still stand, of what was read or is written. */
  readonly expected: readonly Pick<RunDocument, 'runId' | 'version'>[];
  /** The new documents. Each becomes the version after the one that stands. */
  readonly writes: readonly Pick<RunDocument, 'runId' | 'json'>[];
}

/**
 * Both steps first raise and lock the fence of every lease in `fences`, then check with a fresh look that the run's lease
 * is still that one, released and revoked ones refused, expired ones not. Runs are taken in one sorted order.
 */
export interface DocumentStore {
  /**
   * Raises the fences and reads the documents after that, in the order of `runIds`.
   *
   * @throws LeaseLostError when a fence names a lease that is older, foreign, unknown, released or revoked.
   * @throws UnfencedRunError when a run was leased, has no fence here, and `allowUnfenced` is false.
   */
  openDocuments(request: OpenRequest, options?: CallOptions): Promise<readonly RunDocument[]>;

  /**
   * Checks all fences and versions and writes all documents, in one atomic step: all or nothing.
   *
   * @throws LeaseLostError and UnfencedRunError as `openDocuments` does. Nothing was written.
   * @throws ConflictError when an expected version has changed. Nothing was written.
   * @throws OutcomeUnknownError when no answer came: read again before deciding.
   */
  commitDocuments(request: CommitRequest, options?: CallOptions): Promise<void>;
}
