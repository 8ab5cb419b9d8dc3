import { ConflictError } from '../../errors.ts';
import type { CommitRequest, DocumentStore, OpenRequest, RunDocument } from '../../session/documents.ts';
import type { CallOptions } from '../store.ts';
import type { SqliteConnection } from './connection.ts';
import { checkLease, checkUnfenced, isRaised, raiseFence } from './fence.ts';

/** The runs' documents in the leases' own file, so that a commit and its fence are one transaction. */
export class SqliteDocuments implements DocumentStore {
  readonly #connection: SqliteConnection;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  /** A fence that stands already is only looked at, so that a worker's later sessions write nothing to open. */
  async openDocuments(request: OpenRequest, options?: CallOptions): Promise<readonly RunDocument[]> {
    const { statements } = this.#connection;
    const raised = await this.#connection.read(
      () => (isRaised(statements, request.fences) ? this.#look(request) : undefined),
      options,
    );
    return raised ?? this.#connection.write(() => this.#raise(request), options);
  }

  async commitDocuments(request: CommitRequest, options?: CallOptions): Promise<void> {
    await this.#connection.write(() => this.#commit(request), options);
  }

  #look(request: OpenRequest): RunDocument[] {
    const { statements } = this.#connection;
    this.#connection.now();
    for (const fence of request.fences) checkLease(statements, fence);
    checkUnfenced(statements, request);
    return request.runIds.map((runId) => this.#document(runId));
  }

  #raise(request: OpenRequest): RunDocument[] {
    const { statements } = this.#connection;
    this.#connection.now();
    for (const fence of request.fences) raiseFence(statements, fence);
    checkUnfenced(statements, request);
    return request.runIds.map((runId) => this.#document(runId));
  }

  #commit(request: CommitRequest): void {
    const { statements } = this.#connection;
    const documents = new Map(this.#raise(request).map((document) => [document.runId, document]));
    for (const { runId, version } of request.expected) {
      if (documents.get(runId)?.version !== version)
        throw new ConflictError(`Run ${JSON.stringify(runId)} has changed`);
    }
    for (const { runId, json } of request.writes) {
      statements.writeDocument.run(runId, documents.get(runId)!.version + 1, json);
    }
  }

  #document(runId: string): RunDocument {
    const row = this.#connection.statements.document.get(runId) as Omit<RunDocument, 'runId'> | undefined;
    return { runId, version: row?.version ?? 0, json: row?.json ?? '{}' };
  }
}
