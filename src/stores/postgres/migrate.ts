import { StoreUnavailableError } from '../../errors.ts';
import { checkString } from '../../options.ts';
import { checkOut, giveBack, openPool, type PostgresClient, type PostgresConnection } from './client.ts';
import { toStoreError } from './errors.ts';
import { MIGRATIONS, SCHEMA_VERSION } from './schema.ts';

/** Where to install the schema. */
export interface MigrateOptions extends PostgresConnection {
  /** The schema to install into. It holds nothing else. @default 'lessor' */
  readonly schema?: string | undefined;
}

/** What a migration found and left. */
export interface Migration {
  /** 0: there was nothing. */
  readonly from: number;
  readonly to: number;
}

/**
 * Installs the schema of the leases, or brings it up to this library's version, in one transaction.
 *
 * Running it again changes nothing; several at once wait for each other. It needs the right to create a schema; the store
 * itself needs USAGE on the schema, EXECUTE on its functions, and SELECT, INSERT and UPDATE on its tables.
 *
 * @throws StoreUnavailableError when nothing was changed: no server, no right, or a newer schema than this library knows.
 */
export async function migratePostgres({ schema = 'lessor', ...connection }: MigrateOptions): Promise<Migration> {
  const quoted = quoteSchema(schema);
  const { pool, end } = await openPool(connection);
  try {
    const client = await checkOut(pool).catch((error: unknown) => {
      throw toStoreError(error, 'connecting', quoted);
    });
    return await inTransaction(client, quoted, () => migrate(client, quoted));
  } finally {
    await end();
  }
}

/** A name as SQL quotes it. @throws TypeError or RangeError when PostgreSQL could not keep it whole. */
export function quoteSchema(schema: string): string {
  checkString('schema', schema);
  if (
    schema === '' ||
    schema.includes('\0') ||
    !schema.isWellFormed() ||
    Buffer.byteLength(schema) > 63 - 'lessor:'.length
  ) {
    throw new RangeError(`Expected \`schema\` to have 1 to 56 bytes of UTF-8, got ${JSON.stringify(schema)}`);
  }
  if (schema.includes('$')) throw new RangeError(`Expected \`schema\` to hold no $, got ${JSON.stringify(schema)}`);
  return `"${schema.replaceAll('"', '""')}"`;
}

async function migrate(client: PostgresClient, schema: string): Promise<Migration> {
  const ask = async (text: string, values?: unknown[]) =>
    (await client.query(values ? { text, values } : { text })).rows;
  // Whoever else migrates waits here, until this transaction ends.
  await ask('SELECT pg_advisory_xact_lock(hashtext($1), 7105)', [schema]);
  const [found] = await ask(
    `SELECT (to_regclass($1) IS NOT NULL)::text AS migrated, current_setting('server_encoding') AS encoding`,
    [`${schema}.meta`],
  );
  if (found?.['encoding'] !== 'UTF8') {
    throw new StoreUnavailableError(`Expected a database with the encoding UTF8, got ${String(found?.['encoding'])}`);
  }
  const [meta] = found['migrated'] === 'true' ? await ask(`SELECT version::text FROM ${schema}.meta`) : [];
  const from = Number(meta?.['version'] ?? 0);
  if (from > SCHEMA_VERSION) {
    throw new StoreUnavailableError(
      `The schema ${schema} has version ${from}, and this library knows ${SCHEMA_VERSION}: use a newer one`,
    );
  }
  if (from === SCHEMA_VERSION) return { from, to: from };
  await ask(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
  for (const step of MIGRATIONS.slice(from)) await ask(step(schema));
  await ask(`UPDATE ${schema}.meta SET version = ${SCHEMA_VERSION}`);
  return { from, to: SCHEMA_VERSION };
}

async function inTransaction<Result>(
  client: PostgresClient,
  schema: string,
  work: () => Promise<Result>,
): Promise<Result> {
  let failure: unknown;
  try {
    // Said explicitly, since what it reads after waiting must be what the one before has committed.
    await client.query({ text: 'BEGIN ISOLATION LEVEL READ COMMITTED' });
    const result = await work();
    await client.query({ text: 'COMMIT' });
    return result;
  } catch (error) {
    failure = error;
    throw error instanceof StoreUnavailableError ? error : toStoreError(error, 'sent', schema);
  } finally {
    // The connection ends with a failed transaction, and the transaction with it.
    giveBack(client, { broken: failure !== undefined });
  }
}
