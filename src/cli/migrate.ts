/** `lessor migrate`: installs the leases' schema in a PostgreSQL database, or brings it up to date. */
import { exitCodes } from './exit-codes.ts';
import { isPostgres } from './fence-table.ts';
import { printable, say } from './terminal.ts';
import { UsageError, parse } from './usage.ts';

export interface MigrateInvocation {
  readonly name: 'migrate';
  readonly store: string | undefined;
  readonly schema: string;
}

export function parseMigrate(args: readonly string[]): MigrateInvocation {
  const { values, positionals } = parse('migrate', args, { store: { type: 'string' }, schema: { type: 'string' } });
  if (positionals.length > 0) {
    throw new UsageError(
      'migrate',
      `Expected no argument, got ${JSON.stringify(positionals[0])}. Did you mean --store?`,
    );
  }
  return { name: 'migrate', store: values.store, schema: values.schema ?? 'lessor' };
}

export async function migrate({ schema }: MigrateInvocation, url: string): Promise<number> {
  if (!isPostgres(url)) {
    throw new UsageError('migrate', 'Expected a store that begins with postgres: any other makes its tables itself');
  }
  const { migratePostgres } = await import('../stores/postgres.ts');
  try {
    const { from, to } = await migratePostgres({ url, schema });
    const which = `schema ${printable(schema)}`;
    if (from === to) say(`${which} has version ${to} already`);
    else
      say(from === 0 ? `${which} is installed, version ${to}` : `${which} was brought from version ${from} to ${to}`);
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) {
      throw new UsageError('migrate', error.message.replaceAll('`', ''));
    }
    throw error;
  }
  return exitCodes.ok;
}
