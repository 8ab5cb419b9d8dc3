import { createHash } from 'node:crypto';
import type { FenceTableColumns } from '../fence-table.ts';
import { quoteIdentifier, toFenceTableError } from '../fence-table.ts';
import type { CallOptions } from '../store.ts';
import type { Caller } from './caller.ts';

const TRIGGER = 'lessor_fence';

/**
 * The SQL that fences a table: from then on a row is inserted, updated or deleted only with the token of its run's newest
 * lease, by any client in any language. Rows of runs that were never leased carry no token.
 *
 * An insertion and an update go by the token that is in the row afterwards, so an update writes the token of whoever
 * updates. A deletion goes by the token that the row carries, and so does taking a row away from its run.
 *
 * @param table - may name its schema: `app.jobs`.
 * @param schema - quoted, of the leases.
 */
export function fenceTableSql(table: string, { run, token }: FenceTableColumns, schema: string): string {
  const [name, body] = [quotePath(table), functionOf({ run, token }, schema)];
  const [runColumn, tokenColumn] = [quoteIdentifier(run), quoteIdentifier(token)];
  // Else a column that is missing would show at the first write only.
  return `SELECT ${runColumn}::text, ${tokenColumn}::bigint FROM ${name} LIMIT 0;
CREATE OR REPLACE FUNCTION ${body}() RETURNS trigger LANGUAGE plpgsql AS $lessor$
BEGIN
  IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND OLD.${runColumn} IS DISTINCT FROM NEW.${runColumn} THEN
    PERFORM ${schema}.guard_row(OLD.${runColumn}::text, OLD.${tokenColumn}::bigint);
  END IF;
  IF TG_OP <> 'DELETE' THEN
    PERFORM ${schema}.guard_row(NEW.${runColumn}::text, NEW.${tokenColumn}::bigint);
  END IF;
  RETURN NULL;
END $lessor$;
DROP TRIGGER IF EXISTS ${TRIGGER} ON ${name};
CREATE TRIGGER ${TRIGGER} AFTER INSERT OR UPDATE OR DELETE ON ${name} FOR EACH ROW EXECUTE FUNCTION ${body}();
`;
}

/** The SQL that takes the fence away again. The trigger's function stays: another table may use it. */
export function unfenceTableSql(table: string): string {
  return `DROP TRIGGER IF EXISTS ${TRIGGER} ON ${quotePath(table)};
`;
}

/** Runs the SQL as one transaction. @throws RangeError when there is no such table, or it has no such columns. */
export async function define(
  caller: Caller,
  text: string,
  table: string,
  options: CallOptions | undefined,
): Promise<void> {
  try {
    // Whoever waits for the table's lock keeps everybody behind it waiting: not for longer than the call.
    const bounded = `SELECT set_config('lock_timeout', '3s', true);\n${text}`;
    await caller.run({ text: bounded, writes: true }, [], options?.signal);
  } catch (error) {
    throw toFenceTableError(error, table, /^(42P01|42703|3F000|42846) /);
  }
}

/** One function for all tables with these columns, under a name that PostgreSQL need not cut. */
function functionOf({ run, token }: FenceTableColumns, schema: string): string {
  const hash = createHash('sha256').update(`${run}\0${token}`).digest('hex').slice(0, 16);
  return `${schema}."fenced_row_${hash}"`;
}

function quotePath(table: string): string {
  return table.split('.').map(quoteIdentifier).join('.');
}
