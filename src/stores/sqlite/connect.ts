import { Checkpoints, hasCheckpointBug } from './checkpoints.ts';
import { SqliteConnection } from './connection.ts';
import { isInTransaction, type SqliteDatabase } from './database.ts';
import { ConnectionInUse, toStoreError } from './errors.ts';
import { makeDurable, nameOf, readFileName, readPragma, withoutBlocking } from './pragmas.ts';
import { installSchema } from './schema.ts';
import { SqliteTurns } from './turns.ts';

export interface ConnectOptions {
  readonly database: SqliteDatabase;
  /** So long a call waits for the file's lock. */
  readonly busyTimeoutSeconds: number;
  /** Whether the store sets the connection up and closes it. */
  readonly ownsDatabase: boolean;
}

/** Opens the leases in the database's file, and makes the tables where there are none. */
export async function connect({
  database,
  busyTimeoutSeconds,
  ownsDatabase,
}: ConnectOptions): Promise<SqliteConnection> {
  const turns = new SqliteTurns(busyTimeoutSeconds);
  let name = 'given';
  try {
    if (ownsDatabase) database.exec('PRAGMA busy_timeout = 0');
    const busyTimeout = Number(readPragma(database, 'busy_timeout'));
    const open = (): SqliteConnection => {
      if (isInTransaction(database)) throw new ConnectionInUse();
      const file = readFileName(database);
      name = nameOf(file);
      if (ownsDatabase) makeDurable(database);
      const marker = installSchema(database, name);
      const ownCheckpoints = ownsDatabase && file !== '' && hasCheckpointBug(database);
      const checkpoints = ownCheckpoints ? new Checkpoints(database, file) : undefined;
      return new SqliteConnection({ database, ownsDatabase, turns, busyTimeout, file, marker, checkpoints });
    };
    return await turns.take(() => withoutBlocking(database, busyTimeout, open));
  } catch (error) {
    throw toStoreError(error, name);
  }
}
