import { checkObject, checkString, rangeError } from '../options.ts';

/** Which columns of a user's table name the run and carry the token of whoever wrote the row. */
export interface FenceTableColumns {
  readonly run: string;
  readonly token: string;
}

/** @throws TypeError or RangeError that names the argument. */
export function checkFenceTable(table: unknown, columns: unknown): asserts table is string {
  checkIdentifier('table', table);
  checkObject('columns', columns);
  const { run, token } = columns as Partial<Record<keyof FenceTableColumns, unknown>>;
  checkIdentifier('columns.run', run);
  checkIdentifier('columns.token', token);
}

function checkIdentifier(argument: string, value: unknown): asserts value is string {
  checkString(argument, value);
  if (value === '' || value.includes('\0')) throw rangeError(argument, 'to be a name', value);
}

/** A name as SQL takes it, whatever stands in it. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** The caller's mistake where the database says so by `missing`, else the error as it is. */
export function toFenceTableError(error: unknown, table: string, missing: RegExp): unknown {
  const { cause = error } = (error ?? {}) as { cause?: unknown };
  const { message, code } = (cause ?? {}) as { message?: unknown; code?: unknown };
  if (!missing.test(`${String(code)} ${String(message)}`)) return error;
  return new RangeError(`Expected \`table\` to name a table with these columns, got ${table}: ${String(message)}`, {
    cause,
  });
}
