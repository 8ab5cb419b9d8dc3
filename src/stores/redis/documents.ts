import { ConflictError, LeaseLostError, UnfencedRunError } from '../../errors.ts';
import { rangeError } from '../../options.ts';
import type { CommitRequest, DocumentStore, Fence, OpenRequest, RunDocument } from '../../session/documents.ts';
import type { CallOptions } from '../store.ts';
import { answerOf, lossOf } from './answers.ts';
import { COMMIT_DOCUMENTS, OPEN_DOCUMENTS } from './fence-scripts.ts';
import type { RedisKeys } from './keys.ts';
import { bucketOf } from './keys.ts';
import type { MarkedCalls } from './marked-calls.ts';
import type { Script } from './scripts.ts';

export interface RedisDocumentsOptions {
  readonly keys: RedisKeys;
  /** The values of the markers, by bucket. */
  readonly markers: readonly string[];
  readonly isCluster: boolean;
  readonly calls: MarkedCalls;
}

/** The runs' documents, each a hash beside its run's lease. */
export class RedisDocuments implements DocumentStore {
  readonly #options: RedisDocumentsOptions;

  constructor(options: RedisDocumentsOptions) {
    this.#options = options;
  }

  async openDocuments(request: OpenRequest, options?: CallOptions): Promise<readonly RunDocument[]> {
    const reply = await this.#run(OPEN_DOCUMENTS, request, [], [], options);
    const found = reply[1] as readonly unknown[];
    return request.runIds.map((runId, index) => {
      const [version, json] = answerOf(found[index]);
      return { runId, version: Number(version), json: json! };
    });
  }

  async commitDocuments(request: CommitRequest, options?: CallOptions): Promise<void> {
    const { runIds, expected, writes } = request;
    const texts = new Map(writes.map(({ runId, json }) => [runId, json]));
    const documents = runIds.map((runId) => texts.get(runId) ?? '');
    await this.#run(COMMIT_DOCUMENTS, request, expected, documents, options);
  }

  async #run(
    script: Script,
    request: OpenRequest,
    expected: CommitRequest['expected'],
    documents: readonly string[],
    options: CallOptions | undefined,
  ): Promise<readonly unknown[]> {
    const { keys, markers, calls } = this.#options;
    const { runIds, fences, allowUnfenced } = request;
    this.#checkSlots(runIds);
    const versions = new Map(expected.map(({ runId, version }) => [runId, version]));
    const runKeys = runIds.flatMap((runId) => [keys.marker(bucketOf(runId)), keys.lease(runId), keys.document(runId)]);
    const runArgs = runIds.flatMap((runId) => {
      const fence = fences.find((candidate) => candidate.runId === runId);
      return [markers[bucketOf(runId)]!, ...fenceArgs(fence, allowUnfenced), String(versions.get(runId) ?? '')];
    });
    const call = { bucket: bucketOf(runIds[0]!), keys: runKeys, args: [...runArgs, ...documents] };
    const reply = await calls.send(script, call, true, options);
    throwRefusal(reply, request);
    return reply;
  }

  /** One script runs in one slot. */
  #checkSlots(runIds: readonly string[]): void {
    if (!this.#options.isCluster || new Set(runIds.map(bucketOf)).size === 1) return;
    throw rangeError('runs', 'to lie in one slot of the Redis cluster: use a session for each of them', runIds);
  }
}

function fenceArgs(fence: Fence | undefined, allowUnfenced: boolean): string[] {
  if (fence === undefined) return [allowUnfenced ? 'allow' : 'refuse', '', '', ''];
  return ['fenced', fence.workerId, String(fence.fencingToken), fence.acquisitionId ?? ''];
}

function throwRefusal([status, place, refused]: readonly unknown[], { runIds, fences }: OpenRequest): void {
  const runId = runIds[Number(place) - 1]!;
  switch (String(status)) {
    case 'refused': {
      const fence = fences.find((candidate) => candidate.runId === runId)!;
      throw new LeaseLostError(fence, lossOf(fence, answerOf(refused)));
    }
    case 'unfenced':
      throw new UnfencedRunError(runId);
    case 'conflict':
      throw new ConflictError(`Run ${JSON.stringify(runId)} has changed`);
  }
}
