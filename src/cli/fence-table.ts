/** `lessor fence-table TABLE --run COLUMN --token COLUMN`: puts the fence into a table of the user's, or takes it out. */
import type { FenceTableColumns } from '../stores/fence-table.ts';
import { exitCodes } from './exit-codes.ts';
import { printable, say } from './terminal.ts';
import { UsageError, parse } from './usage.ts';

export interface FenceTableInvocation {
  readonly name: 'fence-table';
  readonly table: string;
  /** Null takes the fence away. */
  readonly columns: FenceTableColumns | null;
  readonly store: string | undefined;
  /** Of the leases, in PostgreSQL. */
  readonly schema: string | undefined;
  /** Only shows the SQL. */
  readonly print: boolean;
}

/** The members of a store that this command needs. */
interface FencedTables extends AsyncDisposable {
  fenceTable(table: string, columns: FenceTableColumns): Promise<void>;
  unfenceTable(table: string): Promise<void>;
}

export function parseFenceTable(args: readonly string[]): FenceTableInvocation {
  const { values, positionals } = parse('fence-table', args, {
    store: { type: 'string' },
    schema: { type: 'string' },
    run: { type: 'string' },
    token: { type: 'string' },
    remove: { type: 'boolean' },
    print: { type: 'boolean' },
  });
  const [table, extra] = positionals;
  if (!table) throw new UsageError('fence-table', 'Expected TABLE, the name of the table');
  if (extra !== undefined) throw new UsageError('fence-table', `Expected one TABLE, got also ${JSON.stringify(extra)}`);
  return {
    name: 'fence-table',
    table,
    columns: values.remove ? null : toColumns(values.run, values.token),
    store: values.store,
    schema: values.schema,
    print: values.print ?? false,
  };
}

function toColumns(run: string | undefined, token: string | undefined): FenceTableColumns {
  if (!run) throw new UsageError('fence-table', 'Expected --run COLUMN, the column that names the run');
  if (!token) throw new UsageError('fence-table', 'Expected --token COLUMN, the column for the fencing token');
  return { run, token };
}

export async function fenceTable(invocation: FenceTableInvocation, url: string): Promise<number> {
  const { table, columns, schema, print } = invocation;
  if (print) {
    process.stdout.write(`BEGIN;\n${await sqlOf(invocation, url)}COMMIT;\n`);
    return exitCodes.ok;
  }
  try {
    await using store = await openTables(url, schema);
    await (columns === null ? store.unfenceTable(table) : store.fenceTable(table, columns));
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) {
      throw new UsageError('fence-table', error.message.replaceAll('`', ''));
    }
    throw error;
  }
  say(columns === null ? `table ${printable(table)} has no fence` : `table ${printable(table)} is fenced`);
  return exitCodes.ok;
}

async function sqlOf({ table, columns, schema = 'lessor' }: FenceTableInvocation, url: string): Promise<string> {
  if (isPostgres(url)) {
    const { fenceTableSql, unfenceTableSql } = await import('../stores/postgres/fence-table.ts');
    const { quoteSchema } = await import('../stores/postgres/migrate.ts');
    return columns === null ? unfenceTableSql(table) : fenceTableSql(table, columns, quoteSchema(schema));
  }
  checkSqlite(url, schema);
  const { fenceTableSql, unfenceTableSql } = await import('../stores/sqlite/fence-table.ts');
  return columns === null ? unfenceTableSql(table) : fenceTableSql(table, columns);
}

async function openTables(url: string, schema: string | undefined): Promise<FencedTables> {
  if (isPostgres(url)) {
    const { PostgresStore } = await import('../stores/postgres.ts');
    return PostgresStore.open({ url, schema });
  }
  checkSqlite(url, schema);
  const { openStore } = await import('../stores/open-store.ts');
  return (await openStore(url)) as unknown as FencedTables;
}

export function isPostgres(url: string): boolean {
  return /^postgres(ql)?:/.test(url);
}

function checkSqlite(url: string, schema: string | undefined): void {
  if (!url.startsWith('sqlite:')) {
    throw new UsageError('fence-table', 'Expected a store with tables, sqlite: or postgres:');
  }
  if (schema !== undefined && schema !== 'lessor') {
    throw new UsageError('fence-table', 'Expected no --schema: SQLite has none');
  }
}
