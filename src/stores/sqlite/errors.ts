/** What a driver's error means for a lease. The three drivers name SQLite's result codes in three ways. */
import { LeaseError, StateLostError, StoreUnavailableError } from '../../errors.ts';

const BUSY = 5;
const LOCKED = 6;
const PROTOCOL = 15;

/** SQLite's primary result codes that have a name here, with what they say to people. */
const MEANINGS: Readonly<Record<number, readonly [name: string, sentence: string]>> = {
  [BUSY]: ['SQLITE_BUSY', 'is locked'],
  [LOCKED]: ['SQLITE_LOCKED', 'is locked'],
  [PROTOCOL]: ['SQLITE_PROTOCOL', 'is locked'],
  8: ['SQLITE_READONLY', 'cannot be written'],
  10: ['SQLITE_IOERR', 'cannot be read or written: input/output error'],
  11: ['SQLITE_CORRUPT', 'is damaged'],
  13: ['SQLITE_FULL', 'cannot grow: the disk or the database is full'],
  14: ['SQLITE_CANTOPEN', 'cannot be opened'],
  19: ['SQLITE_CONSTRAINT', 'holds something that its schema refuses'],
  26: ['SQLITE_NOTADB', 'is not a SQLite database'],
};

/** Somebody else has the lock, or uses this very connection: the same step may succeed in a moment. Nothing was applied. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return error instanceof ConnectionInUse || code === BUSY || code === LOCKED || code === PROTOCOL;
}

/** The connection is inside a transaction that is not the store's. What the store wrote now could be rolled back with it. */
export class ConnectionInUse extends Error {
  constructor() {
    super("The connection is inside a transaction of its user's");
  }
}

/** The typed error for what a step threw. Nothing of the step was applied. Errors that are typed already stay as they are. */
export function toStoreError(error: unknown, name: string): Error {
  if (error instanceof LeaseError || error instanceof RangeError) return error;
  if (isMissingTable(error)) return stateLost(name, 'its tables are gone', error);
  const meaning = isGone(error) ? 'is gone' : MEANINGS[resultCode(error) ?? 0]?.[1];
  const message = error instanceof Error ? error.message : String(error);
  return new StoreUnavailableError(`The SQLite store ${name} ${meaning ?? 'failed'}: ${message}`, { cause: error });
}

export function stateLost(name: string, why: string, cause?: unknown): StateLostError {
  return new StateLostError(
    `The SQLite store ${name} has lost its leases: ${why}. Restore the file or open the store anew, after raising its fences`,
    { cause },
  );
}

function isMissingTable(error: unknown): boolean {
  return error instanceof Error && /no such (table|column): (main\.)?(lessor_|lease\.|fence\.)/.test(error.message);
}

function isGone(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === 'ENOENT';
}

/** The primary result code, from `errcode` (node:sqlite), `rawCode` (libsql) or the name in `code` (both others). */
function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const { errcode, rawCode, code } = error as { errcode?: unknown; rawCode?: unknown; code?: unknown };
  const extended = errcode ?? rawCode;
  if (typeof extended === 'number') return extended & 0xff;
  if (typeof code !== 'string') return undefined;
  return Object.keys(MEANINGS)
    .map(Number)
    .find((number) => code.startsWith(MEANINGS[number]![0]));
}
