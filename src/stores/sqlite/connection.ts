import { type BigIntStats, statSync } from 'node:fs';
import { OutcomeUnknownError, type StateLostError, StoreUnavailableError } from '../../errors.ts';
import type { CallOptions, Durability } from '../store.ts';
import { isInTransaction, isOpen, type SqliteDatabase } from './database.ts';
import { makeDurable, readDurability, readFileName, readPragma } from './durability.ts';
import { ConnectionInUse, isBusy, stateLost, toStoreError } from './errors.ts';
import { installSchema } from './schema.ts';
import { prepareStatements, type SqliteStatements } from './statements.ts';
import { SqliteTurns } from './turns.ts';

/** A step's look at the file: the time in seconds, read after the lock was taken. */
export type Step<Result> = (now: number) => Result;

export interface ConnectOptions {
  readonly database: SqliteDatabase;
  /** So long a call waits for the file's lock. */
  readonly busyTimeoutSeconds: number;
  /** Whether the store sets the connection up and closes it. */
  readonly ownsDatabase: boolean;
}

/**
 * One connection to one file of leases: runs each call as one atomic step, waits for the file's lock without stopping the
 * event loop, makes sure before every step that this is still the same file, and words every failure.
 */
export class SqliteConnection {
  readonly durability: Durability;
  readonly statements: SqliteStatements;
  readonly #database: SqliteDatabase;
  readonly #name: string;
  readonly #file: string;
  readonly #identity: BigIntStats | undefined;
  readonly #marker: string;
  readonly #turns: SqliteTurns;
  readonly #ownsDatabase: boolean;
  /** The user's own wait for locks in milliseconds, which would stop the event loop during a step. */
  readonly #busyTimeout: number;
  #lost: StateLostError | undefined;
  #closed = false;

  private constructor({ database, ownsDatabase }: ConnectOptions, file: string, marker: string, turns: SqliteTurns) {
    this.#database = database;
    this.#ownsDatabase = ownsDatabase;
    this.#file = file;
    this.#name = nameOf(file);
    this.#marker = marker;
    this.#turns = turns;
    this.#identity = file === '' ? undefined : statSync(file, { bigint: true });
    this.#busyTimeout = Number(readPragma(database, 'busy_timeout'));
    this.durability = readDurability(database, file);
    this.statements = prepareStatements(database);
  }

  /** Opens the file's leases, and makes the tables where there are none. */
  static async open(options: ConnectOptions): Promise<SqliteConnection> {
    const { database, busyTimeoutSeconds, ownsDatabase } = options;
    const turns = new SqliteTurns(busyTimeoutSeconds);
    let name = 'given';
    const step = (): SqliteConnection => {
      if (isInTransaction(database)) throw new ConnectionInUse();
      const file = readFileName(database);
      name = nameOf(file);
      if (ownsDatabase) makeDurable(database);
      return new SqliteConnection(options, file, installSchema(database, name), turns);
    };
    try {
      const busyTimeout = Number(readPragma(database, 'busy_timeout'));
      return await turns.take(() => withoutBlocking(database, busyTimeout, step));
    } catch (error) {
      throw toStoreError(error, name);
    }
  }

  /** Runs the step on the newest committed state. It takes no lock, so no writer keeps it waiting. */
  read<Result>(step: Step<Result>, options?: CallOptions): Promise<Result> {
    return this.#run(() => step(this.#checkedNow()), options);
  }

  /** Runs the step in one write transaction: all of it is applied, or nothing. */
  write<Result>(step: Step<Result>, options?: CallOptions): Promise<Result> {
    return this.#run(() => this.#transact(step), options);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#turns.end(this.#closedError());
    if (this.#ownsDatabase && isOpen(this.#database)) this.#database.close();
  }

  checkOpen(): void {
    if (this.#closed) throw this.#closedError();
  }

  async #run<Result>(step: () => Result, { signal }: CallOptions = {}): Promise<Result> {
    this.checkOpen();
    signal?.throwIfAborted();
    try {
      return await this.#turns.take(() => this.#attempt(step), signal);
    } catch (error) {
      if (signal?.aborted === true && error === signal.reason) throw error;
      throw toStoreError(error, this.#name);
    }
  }

  #attempt<Result>(step: () => Result): Result {
    this.#checkSame();
    return withoutBlocking(this.#database, this.#busyTimeout, step);
  }

  #transact<Result>(step: Step<Result>): Result {
    this.statements.begin.run();
    let result: Result;
    try {
      result = step(this.#checkedNow());
    } catch (error) {
      this.#undo();
      throw error;
    }
    try {
      this.statements.commit.run();
    } catch (error) {
      this.#undo();
      // A COMMIT that found a lock has written nothing. After any other error it may stand in the file's log.
      if (isBusy(error)) throw error;
      throw new OutcomeUnknownError(`The SQLite store ${this.#name} failed while it wrote`, { cause: error });
    }
    return result;
  }

  #undo(): void {
    // Some errors have ended the transaction already.
    if (isInTransaction(this.#database)) this.statements.rollback.run();
  }

  /** The time, once it is sure that the tables are those which this store has opened. */
  #checkedNow(): number {
    const { now, marker } = this.statements.look.get() as { now: number; marker: string | null };
    if (marker !== this.#marker) throw (this.#lost = stateLost(this.#name, 'its marker is another'));
    return now;
  }

  /** SQLite goes on writing to a file that was deleted or replaced, where no other process would see it. */
  #checkSame(): void {
    if (this.#lost) throw this.#lost;
    this.checkOpen();
    if (!isOpen(this.#database)) throw new StoreUnavailableError(`The connection of ${this.#name} was closed`);
    if (isInTransaction(this.#database)) throw new ConnectionInUse();
    if (this.#identity === undefined) return;
    const { dev, ino } = statSync(this.#file, { bigint: true });
    if (dev === this.#identity.dev && ino === this.#identity.ino) return;
    throw (this.#lost = stateLost(this.#name, 'another file has taken its place'));
  }

  #closedError(): StoreUnavailableError {
    return new StoreUnavailableError(`The SQLite store ${this.#name} was closed`);
  }
}

/** Takes the connection's own wait for locks away for one step, since it would stop the event loop. */
function withoutBlocking<Result>(database: SqliteDatabase, busyTimeout: number, step: () => Result): Result {
  if (busyTimeout === 0) return step();
  database.exec('PRAGMA busy_timeout = 0');
  try {
    return step();
  } finally {
    database.exec(`PRAGMA busy_timeout = ${busyTimeout}`);
  }
}

function nameOf(file: string): string {
  return file === '' ? 'in memory' : JSON.stringify(file);
}
