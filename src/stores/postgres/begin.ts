/** BEGIN and the fence as one text and one round trip. As statements of their own they are two. */
import type { LeaseRef } from '../../lease.ts';
import type { Row } from './caller.ts';
import type { PostgresClient, PostgresStatement } from './client.ts';
import { isUnprepared } from './errors.ts';
import {
  checkPlace,
  distrust,
  isDirect,
  learnDirectness,
  mayKeep,
  noteKept,
  noteRaised,
  toTransactionError,
} from './fence.ts';
import { fenceStatements, keepValues, raiseValues, type FenceHome } from './fence-statements.ts';

/** The members of `pg`'s client that are called. */
export interface TransactionClient extends PostgresClient {
  readonly processID?: number | null | undefined;
  escapeLiteral(value: string): string;
}

export interface Beginning {
  readonly client: TransactionClient;
  /** The statement that begins the transaction. */
  readonly how: string;
  readonly lease: LeaseRef;
  /** What the caller gave, of which the lease is a copy. */
  readonly given: LeaseRef;
  readonly home: FenceHome;
}

interface Answer {
  readonly rows: readonly Row[];
  readonly rowCount: number | null;
}

/** Connections on which statements are prepared for EXECUTE, under these names. The client itself knows of others. */
const prepared = new WeakMap<object, Set<string>>();

export async function begin(beginning: Beginning): Promise<void> {
  const { client, how, lease, given, home } = beginning;
  const { keep, raise } = fenceStatements(home);
  const isKeeping = mayKeep(client, given, home);
  let row;
  try {
    if (isKeeping) {
      const { rowCount } = await ask(client, `${how}; ${textOf(client, keep, keepValues(lease))}`);
      if (noteKept(given, rowCount)) return;
    }
    const raising = textOf(client, raise, raiseValues(lease, home));
    row = (await ask(client, isKeeping ? raising : `${how}; ${raising}`)).rows[0];
  } catch (error) {
    if (!isUnprepared(error)) throw toTransactionError(error, lease);
    // Somebody throws away what was prepared, by DISCARD ALL for one, and may do so again.
    distrust(client);
    return begin({ ...beginning, how: `ROLLBACK; ${how}` });
  }
  learnDirectness(client, row);
  checkPlace(row, home);
  noteRaised(given);
}

/** The answer to the last statement of the text. */
async function ask(client: TransactionClient, text: string): Promise<Answer> {
  const answers: unknown = await client.query({ text });
  return [answers].flat().at(-1) as Answer;
}

/** The statement with its values in the text, since several statements of one text take no others. */
function textOf(client: TransactionClient, statement: PostgresStatement, values: readonly (string | number)[]): string {
  const { text, name } = statement;
  const literals = values.map((value) => (typeof value === 'number' ? String(value) : client.escapeLiteral(value)));
  if (name === undefined || !isDirect(client))
    return text.replace(/\$(\d)/g, (_, place) => literals[Number(place) - 1]!);
  const names = prepared.get(client) ?? new Set();
  const execute = `EXECUTE ${name}_text(${literals.join(', ')})`;
  if (names.has(name)) return execute;
  prepared.set(client, names.add(name));
  return `PREPARE ${name}_text AS ${text}; ${execute}`;
}
