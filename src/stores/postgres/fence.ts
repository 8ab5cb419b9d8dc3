import { StoreUnavailableError } from '../../errors.ts';
import type { LeaseRef } from '../../lease.ts';
import { checkObject } from '../../options.ts';
import type { Row } from './caller.ts';
import type { PostgresStatement } from './client.ts';
import { toFenceError } from './documents.ts';
import { isUnprepared, otherHome } from './errors.ts';
import { fenceStatements, keepValues, raiseValues, unprepare, type FenceHome } from './fence-statements.ts';

/** A connection inside a transaction: `pg`'s client, or whatever runs one statement with values on one connection. */
export interface PostgresTransaction {
  query(text: string, values: unknown[]): Promise<{ readonly rows: ReadonlyArray<Readonly<Record<string, unknown>>> }>;
}

/** A client of `pg`, which prepares what has a name, and knows the process that it was told to be connected to. */
export interface PreparingClient {
  readonly processID?: number | null | undefined;
  query(statement: PostgresStatement): Promise<{ readonly rows: readonly Row[]; readonly rowCount: number | null }>;
}

/** Leases that have raised their fence here, and whether it is worth trying to keep it. */
const raised = new WeakMap<LeaseRef, boolean>();

/** Connections that were asked where they lead, and whether that is the server itself. A pooler tells of its own process. */
const directness = new WeakMap<object, boolean>();

/** @throws TypeError for a pool, whose statements may each run on another connection. */
export function checkTransaction(tx: unknown): asserts tx is PostgresTransaction {
  checkObject('tx', tx);
  const { query, totalCount } = tx as Record<string, unknown>;
  if (typeof query !== 'function')
    throw new TypeError('Expected `tx` to be a connection with `query`, as a client of `pg`');
  if (totalCount !== undefined) {
    throw new TypeError(
      'Expected `tx` to be a client inside a transaction, got a pool: take a client by `pool.connect()`',
    );
  }
  const status = statusOf(tx);
  if (status === 'I') throw notInTransaction();
  if (status === 'E')
    throw new StoreUnavailableError('The transaction has failed already: roll it back and begin another');
}

/** `T` in a transaction, `E` in a failed one, `I` outside, as a client of `pg` knows it; anything else does not tell. */
export function statusOf(tx: object): unknown {
  const { getTransactionStatus } = tx as Record<string, unknown>;
  return typeof getTransactionStatus === 'function' ? (getTransactionStatus.call(tx) as unknown) : undefined;
}

/** Runs the fence in the user's transaction. An error leaves that transaction failed, so that it cannot be committed. */
export async function fenceTransaction(tx: PostgresTransaction, lease: LeaseRef, home: FenceHome): Promise<void> {
  let row;
  try {
    // Refused outside a transaction, where the fence would be gone again before the write came.
    if (statusOf(tx) !== 'T') await tx.query(`LOCK TABLE ${home.schema}.meta IN ACCESS SHARE MODE`, []);
    if (mayKeep(tx, lease, home) && (await keep(tx, lease, home))) return;
    row = await raise(tx, lease, home);
  } catch (error) {
    throw toTransactionError(error, lease);
  }
  checkPlace(row, home);
  noteRaised(lease);
}

/** Whether the connection can be asked to keep the fence, and the lease has raised it. */
export function mayKeep(client: object, lease: LeaseRef, home: FenceHome): boolean {
  return raised.get(lease) === true && isDirect(client) && fenceStatements(home).keep.name !== undefined;
}

/** Where keeping it was in vain before, that is not tried again: the transaction may have one snapshot each time. */
export function noteRaised(lease: LeaseRef): void {
  if (!raised.has(lease)) raised.set(lease, true);
}

/** Whether one row was changed. */
export function noteKept(lease: LeaseRef, rowCount: number | null | undefined): boolean {
  if (rowCount !== 1) raised.set(lease, false);
  return rowCount === 1;
}

async function keep(tx: object, lease: LeaseRef, home: FenceHome): Promise<boolean> {
  const statement = { ...fenceStatements(home).keep, values: keepValues(lease) };
  const { rowCount } = await askPrepared(tx as PreparingClient, statement, home);
  return noteKept(lease, rowCount);
}

async function raise(tx: PostgresTransaction, lease: LeaseRef, home: FenceHome): Promise<Row | undefined> {
  const statement = { ...fenceStatements(home).raise, values: raiseValues(lease, home) };
  const client = tx as unknown as PreparingClient;
  if (statement.name !== undefined && isDirect(tx)) return (await askPrepared(client, statement, home)).rows[0];
  const { rows } = await tx.query(statement.text, statement.values);
  learnDirectness(client, rows[0]);
  return rows[0];
}

async function askPrepared(client: PreparingClient, statement: PostgresStatement, home: FenceHome) {
  try {
    return await client.query(statement);
  } catch (error) {
    // Somebody throws away what was prepared, by DISCARD ALL for one, and may do so again.
    if (isUnprepared(error)) unprepare(home);
    throw error;
  }
}

/**
 * Whether a statement may be prepared on the connection, which saves a third of its time: one that a pooler's next connection
 * does not know would fail the user's transaction. So the first answer on a connection tells whether it is the server's own.
 */
export function isDirect(client: object): boolean {
  return directness.get(client) === true;
}

/** @param row - the fence's answer. */
export function learnDirectness(client: Pick<PreparingClient, 'processID'>, row: Row | undefined): void {
  if (!directness.has(client)) directness.set(client, Number(row?.['pid']) === client.processID);
}

/** From now on its statements are not prepared. */
export function distrust(client: object): void {
  directness.set(client, false);
}

/** @throws what is wrong when the fence's answer shows that the leases are not those that the store was opened on. */
export function checkPlace(row: Row | undefined, { schema, home }: FenceHome): void {
  const place = String(row?.['place']);
  if (place === '') return;
  throw markerOf(place) === markerOf(home) ? otherHome(schema) : elsewhere();
}

export function toTransactionError(error: unknown, lease: LeaseRef): unknown {
  const known = toFenceError(error, [lease]);
  if (known !== error) return known;
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (code === 'LS014' || code === '25P01') return notInTransaction(error);
  // No such function, schema or table.
  if (code === '42883' || code === '3F000' || code === '42P01') return elsewhere(error);
  const why =
    code === '55P03' ? "an older worker's transaction, or another one of this lease, is still open" : String(message);
  return new StoreUnavailableError(`The transaction could not be fenced: ${why}`, { cause: error });
}

function notInTransaction(cause?: unknown): TypeError {
  return new TypeError('Expected `tx` to be inside a transaction: run BEGIN on it first', { cause });
}

function elsewhere(cause?: unknown): TypeError {
  return new TypeError('Expected the transaction to be in the database of these leases, got another one', { cause });
}

/** Of a home, or a place. */
function markerOf(home: string): string {
  return home.split('/', 1)[0]!;
}
