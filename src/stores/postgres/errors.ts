/** What a client's error means for the call: nothing was applied, it may have been, or the leases are gone. */
import { OutcomeUnknownError, StateLostError, StoreUnavailableError } from '../../errors.ts';
import { tokensUsedUp } from '../requests.ts';

/** How far a call had come when it failed. A read applies nothing, wherever it fails. */
export type CallStage = 'connecting' | 'sent' | 'reading';

const REMEDY =
  'If the server was restored or promoted, run SELECT {schema}.raise_fences(1000000) with more than the grants that any run can have had since; ' +
  'then open the store anew';

/** The error that a caller gets. `cause` keeps the client's. */
export function toStoreError(error: unknown, stage: CallStage, schema: string): Error {
  const { code, constraint } = (error ?? {}) as { code?: unknown; constraint?: unknown };
  const said = error instanceof Error && error.message !== '' ? error.message : String(code ?? error);
  const options = { cause: error };
  if (code === '23514' && constraint === 'lease_fencing_token_check') return tokensUsedUp(Number.MAX_SAFE_INTEGER);
  if (isMissing(code)) {
    return new StateLostError(
      `The schema ${schema} is gone or not the one it was: ${said}. ${remedy(schema)}`,
      options,
    );
  }
  if (code === '25006' || code === '55000') {
    return new StoreUnavailableError(
      `PostgreSQL refused: the connection is read-only or leads to a standby. Leases need the primary: ${said}`,
      options,
    );
  }
  if (stage !== 'sent' || isRefusal(error))
    return new StoreUnavailableError(`PostgreSQL could not be asked: ${said}`, options);
  return new OutcomeUnknownError(`PostgreSQL did not answer, and may have acted: ${said}`, options);
}

/**
 * The states of errors that end the connection, and may come when a commit was already done: the server is shut down or
 * crashes, the connection fails or idles too long, something is wrong inside the server.
 */
const ENDING = /^(?:57P|08|25P0[34]|58|XX)/;

/**
 * A plain refusal: the server has undone the statement, and the connection is as good as it was. Told by the state, since the
 * severity comes in the server's own language.
 */
export function isRefusal(error: unknown): boolean {
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
  return isSqlState(code) && !ENDING.test(code) && severity !== 'FATAL' && severity !== 'PANIC';
}

/** The look without a lock was out of date when the row was locked. Rolled back, and right at the next look. */
export function isOutrun(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'LS003';
}

/** The leases are not the ones that the store was opened on. */
export function otherHome(schema: string): StateLostError {
  return new StateLostError(`PostgreSQL has other leases than this store was opened on. ${remedy(schema)}`);
}

/** `prepared statement does not exist` or exists already: the pooler between has mixed up connections. Nothing was run. */
export function isUnprepared(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return code === '26000' || code === '42P05';
}

/** A table, function or schema that is not there. */
export function isMissing(code: unknown): boolean {
  return code === '42P01' || code === '42883' || code === '3F000' || code === '42703';
}

function isSqlState(code: unknown): code is string {
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && /\d/.test(code);
}

function remedy(schema: string): string {
  return REMEDY.replace('{schema}', schema);
}
