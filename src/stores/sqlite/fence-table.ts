import type { FenceTableColumns } from '../fence-table.ts';
import { quoteIdentifier } from '../fence-table.ts';

/**
 * The SQL that fences a table of the leases' own file: from then on a row is inserted, updated or deleted only with the token
 * of its run's newest lease, by any client of the file. Rows of runs that were never leased carry no token.
 *
 * An insertion and an update go by the token that is in the row afterwards, so an update writes the token of whoever
 * updates. A deletion goes by the token that the row carries, and so does taking a row away from its run.
 */
export function fenceTableSql(table: string, { run, token }: FenceTableColumns): string {
  const [runColumn, tokenColumn] = [quoteIdentifier(run), quoteIdentifier(token)];
  const shown = (row: 'OLD' | 'NEW'): Shown => ({ run: `${row}.${runColumn}`, token: `${row}.${tokenColumn}` });
  return [
    // Else a column that is missing would show at the first write only.
    `SELECT ${[runColumn, tokenColumn].map((column) => `${quoteIdentifier(table)}.${column}`).join(', ')} FROM ${quoteIdentifier(table)} LIMIT 0;`,
    unfenceTableSql(table).trimEnd(),
    trigger(table, 'insert', 'INSERT', shown('NEW')),
    trigger(table, 'update', 'UPDATE', shown('NEW')),
    trigger(table, 'move', 'UPDATE', shown('OLD'), `OLD.${runColumn} IS NOT NEW.${runColumn} AND `),
    trigger(table, 'delete', 'DELETE', shown('OLD')),
    '',
  ].join('\n');
}

/** The SQL that takes the fence away again. */
export function unfenceTableSql(table: string): string {
  const drop = (name: string): string => `DROP TRIGGER IF EXISTS ${nameOf(table, name)};\n`;
  return ['insert', 'update', 'move', 'delete'].map(drop).join('');
}

/** What a row shows, as SQL. */
interface Shown {
  readonly run: string;
  readonly token: string;
}

/** After the write, when the row has what is kept: column types and defaults applied, a new key given out. */
function trigger(table: string, name: string, event: string, row: Shown, when = ''): string {
  return `CREATE TRIGGER ${nameOf(table, name)} AFTER ${event} ON ${quoteIdentifier(table)}
WHEN ${when}NOT ${isCurrent(row)}
BEGIN
  SELECT CASE WHEN ${row.token} IS NULL
    THEN RAISE(ABORT, 'lessor: this run is leased, a write of it needs the fencing token of its newest lease')
    ELSE RAISE(ABORT, 'lessor: lost the lease, this fencing token is not the one of the run''s newest lease') END;
END;`;
}

/** Whoever writes has the file's lock, so that nothing comes between this look and the end of the transaction. */
function isCurrent({ run, token }: Shown): string {
  return `CASE WHEN ${token} IS NULL
  THEN NOT EXISTS (SELECT 1 FROM lessor_lease WHERE run_id = CAST(${run} AS TEXT))
  ELSE EXISTS (SELECT 1 FROM lessor_lease AS lease LEFT JOIN lessor_fence AS fence ON fence.run_id = lease.run_id
    WHERE lease.run_id = CAST(${run} AS TEXT) AND lease.fencing_token = ${token} AND lease.expires_at IS NOT NULL
      AND (fence.run_id IS NULL OR fence.fencing_token < lease.fencing_token
        OR fence.fencing_token = lease.fencing_token AND fence.acquisition_id = lease.acquisition_id)) END`;
}

function nameOf(table: string, name: string): string {
  return quoteIdentifier(`lessor_fence ${name} ${table}`);
}
