import type { FenceTableColumns } from '../fence-table.ts';
import { quoteIdentifier } from '../fence-table.ts';

const TRIGGER = 'lessor_fence';

/**
 * The SQL that fences a table: from then on a row is inserted, updated or deleted only with the token of its run's newest
 * lease in its token column, by any client in any language. Rows of runs that were never leased carry no token.
 *
 * An update writes the token of whoever updates. A deletion goes by the token that the row carries.
 *
 * @param table - may name its schema: `app.jobs`.
 * @param schema - quoted, of the leases.
 */
export function fenceTableSql(table: string, { run, token }: FenceTableColumns, schema: string): string {
  const [name, body] = [quotePath(table), functionOf(table, schema)];
  const [runColumn, tokenColumn] = [quoteIdentifier(run), quoteIdentifier(token)];
  return `BEGIN;
CREATE OR REPLACE FUNCTION ${body}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    PERFORM ${schema}.guard_row(OLD.${runColumn}::text, OLD.${tokenColumn}::bigint);
    RETURN OLD;
  END IF;
  IF TG_OP = 'UPDATE' AND OLD.${runColumn} IS DISTINCT FROM NEW.${runColumn} THEN
    PERFORM ${schema}.guard_row(OLD.${runColumn}::text, NEW.${tokenColumn}::bigint);
  END IF;
  PERFORM ${schema}.guard_row(NEW.${runColumn}::text, NEW.${tokenColumn}::bigint);
  RETURN NEW;
END $$;
DROP TRIGGER IF EXISTS ${TRIGGER} ON ${name};
CREATE TRIGGER ${TRIGGER} BEFORE INSERT OR UPDATE OR DELETE ON ${name} FOR EACH ROW EXECUTE FUNCTION ${body}();
COMMIT;
`;
}

/** The SQL that takes the fence away again. */
export function unfenceTableSql(table: string, schema: string): string {
  return `BEGIN;
DROP TRIGGER IF EXISTS ${TRIGGER} ON ${quotePath(table)};
DROP FUNCTION IF EXISTS ${functionOf(table, schema)}();
COMMIT;
`;
}

function functionOf(table: string, schema: string): string {
  return `${schema}.${quoteIdentifier(`fence of ${table}`.slice(0, 63))}`;
}

function quotePath(table: string): string {
  return table.split('.').map(quoteIdentifier).join('.');
}
