import { ConflictError, LeaseLostError, UnfencedRunError } from '../../errors.ts';
import type { LostReason } from '../../lease.ts';
import type { CommitRequest, Fence, OpenRequest, RunDocument } from '../../session/documents.ts';
import type { Rows } from './caller.ts';
import { columnsOf } from './rows.ts';

/** The arrays that the functions take: one entry per fence, then the runs. */
export function openValues({ fences, runIds, allowUnfenced }: OpenRequest): unknown[] {
  return [...columnsOf(fences, ['runId', 'workerId', 'fencingToken', 'acquisitionId']), runIds, allowUnfenced];
}

/** A row for each run, in order. */
export function documentsOf({ runIds }: OpenRequest, rows: Rows): readonly RunDocument[] {
  return runIds.map((runId, index) => ({
    runId,
    version: Number(rows[index]?.['version']),
    json: String(rows[index]?.['json']),
  }));
}

export function commitValues(request: CommitRequest): unknown[] {
  const { expected, writes } = request;
  return [
    ...openValues(request),
    ...columnsOf(expected, ['runId', 'version']),
    ...columnsOf(writes, ['runId', 'json']),
  ];
}

/** What the server said of a fenced access, in the library's errors. Anything else stays as it is. */
export function toFenceError(error: unknown, fences: readonly Fence[]): unknown {
  const said = serverError(error);
  if (said === undefined) return error;
  const { code, detail, hint = '' } = said;
  const options = { cause: said };
  if (code === 'LS010') {
    const fence = fences.find(({ runId }) => runId === hint) ?? fences[0];
    return fence ? new LeaseLostError(fence, (detail ?? 'unknown') as LostReason, options) : error;
  }
  if (code === 'LS012') return new UnfencedRunError(hint, options);
  if (code === 'LS013') return new ConflictError(`Run ${JSON.stringify(hint)} has changed`, options);
  if (code === '40001' || code === '40P01') {
    return new ConflictError('Another transaction came between: check the lease again and redo', options);
  }
  return error;
}

interface ServerError extends Error {
  readonly code: string;
  readonly detail?: string;
  readonly hint?: string;
}

/** The error that the server sent, itself or as the cause of one of ours. */
function serverError(error: unknown): ServerError | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code)) return error as ServerError;
  return serverError(error.cause);
}
