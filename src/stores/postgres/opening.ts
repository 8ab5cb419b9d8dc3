/** What is asked once, when a store is opened: whether this is a primary with our schema, and what it can lose. */
import { StoreUnavailableError } from '../../errors.ts';
import type { Durability } from '../store.ts';
import { statement, type Caller, type Statement } from './caller.ts';
import { SCHEMA_VERSION } from './schema.ts';

export interface Opening {
  /** What every call compares: the leases' marker and table and, unless failovers are trusted, the server's timeline. */
  readonly home: string;
  readonly durability: Durability;
}

/** What a failover does to an open store. */
export type FailoverPolicy = 'refuse' | 'continue';

const SERVER = statement(
  `SELECT pg_is_in_recovery()::text AS standby, current_setting('transaction_read_only') AS read_only,
    current_setting('fsync') AS fsync, current_setting('synchronous_standby_names') AS standbys,
    (to_regclass($1) IS NOT NULL)::text AS migrated`,
);

/** @throws StoreUnavailableError when it is a standby, read-only, not migrated or of another version. */
export async function readOpening(
  caller: Caller,
  schema: string,
  failover: FailoverPolicy | undefined,
  signal: AbortSignal | undefined,
): Promise<Opening> {
  const [server = {}] = await caller.run(SERVER, [`${schema}.meta`], signal);
  if (server['standby'] === 'true') throw refusal('it is a standby, and leases need the primary');
  if (server['read_only'] === 'on') throw refusal('the connection is read-only, and leases need to write');
  if (server['migrated'] !== 'true') {
    throw refusal(`it has no schema ${schema} with leases. Install it with \`lessor migrate\` or migratePostgres()`);
  }
  const [meta] = await caller.run(metaStatement(schema), [], signal);
  if (meta === undefined)
    throw refusal(`the schema ${schema} has lost its marker. Restore it, or migrate an empty schema`);
  if (Number(meta['version']) !== SCHEMA_VERSION) {
    throw refusal(
      `its schema ${schema} has version ${String(meta['version'])}, and this library needs ${SCHEMA_VERSION}`,
    );
  }
  const isSynchronous = String(server['standbys']) !== '';
  const place = `${String(meta['marker'])}/${String(meta['oid'])}/`;
  const checksTimeline = (failover ?? (isSynchronous ? 'continue' : 'refuse')) === 'refuse';
  return {
    home: checksTimeline ? place + String(meta['timeline']) : place,
    durability: durabilityOf(server['fsync'] === 'on', isSynchronous, meta['settled'] === meta['place'], schema),
  };
}

function metaStatement(schema: string): Statement {
  return statement(
    `SELECT version::text, marker, tableoid::text AS oid, settled, ${schema}.place() AS place,
      ${schema}.timeline() AS timeline FROM ${schema}.meta`,
  );
}

function durabilityOf(fsync: boolean, isSynchronous: boolean, isSettled: boolean, schema: string): Durability {
  const warnings: string[] = [];
  if (!fsync)
    warnings.push('fsync = off: a power loss or a crash of the machine may take grants, and the whole database.');
  if (!isSynchronous) {
    warnings.push('synchronous_standby_names is empty: a standby that is promoted may have missed the last grants.');
  }
  if (!isSettled) {
    warnings.push(
      'The database was restored, copied, upgraded or failed over since its fences were known to be right: run ' +
        `SELECT ${schema}.raise_fences(1000000) with more than the grants that any run may have lost.`,
    );
  }
  return { survives: !fsync ? 'process-crash' : isSynchronous ? 'failover' : 'power-loss', warnings };
}

function refusal(why: string): StoreUnavailableError {
  return new StoreUnavailableError(`PostgreSQL cannot keep leases: ${why}`);
}
