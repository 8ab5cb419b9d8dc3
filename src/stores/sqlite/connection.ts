import { type BigIntStats, statSync } from 'node:fs';
import { type StateLostError, StoreUnavailableError } from '../../errors.ts';
import type { CallOptions, Durability } from '../store.ts';
import type { Checkpoints } from './checkpoints.ts';
import { isInTransaction, isOpen, type SqliteDatabase } from './database.ts';
import { nameOf, readDurability, withoutBlocking } from './pragmas.ts';
import { ConnectionInUse, stateLost, toStoreError } from './errors.ts';
import { fenceOf, type RecordRow } from './rows.ts';
import { prepareStatements, type SqliteStatements } from './statements.ts';
import { commitTogether, type Outcome, snapshot } from './transactions.ts';
import type { SqliteTurns } from './turns.ts';

/** What stands in the file about one run, and the time in seconds, read after the lock was taken. */
export interface Look {
  readonly now: number;
  readonly row: RecordRow | undefined;
  /** The highest token ever issued for the run. */
  readonly fence: number;
}

/** A database whose tables are there, as `connect` opens it. */
export interface OpenedFile {
  readonly database: SqliteDatabase;
  /** Whether the connection is closed with the store. */
  readonly ownsDatabase: boolean;
  readonly turns: SqliteTurns;
  /** The connection's own wait for locks, in milliseconds, which would stop the event loop during a step. */
  readonly busyTimeout: number;
  /** '' for a database in memory. */
  readonly file: string;
  readonly marker: string;
  /** Those that the store makes itself, where SQLite's own are not to be trusted. */
  readonly checkpoints: Checkpoints | undefined;
}

/**
 * One connection to one file of leases: runs each call as one atomic step, waits for the file's lock without stopping the
 * event loop, makes sure before every step that this is still the same file, and words every failure.
 */
export class SqliteConnection {
  readonly durability: Durability;
  readonly statements: SqliteStatements;
  /** By which the store knows its file again. */
  readonly marker: string;
  readonly #database: SqliteDatabase;
  readonly #name: string;
  readonly #file: string;
  readonly #identity: BigIntStats | undefined;
  readonly #turns: SqliteTurns;
  readonly #ownsDatabase: boolean;
  readonly #busyTimeout: number;
  readonly #checkpoints: Checkpoints | undefined;
  #lost: StateLostError | undefined;
  #closed = false;

  constructor({ database, ownsDatabase, turns, busyTimeout, file, marker, checkpoints }: OpenedFile) {
    this.#database = database;
    this.#ownsDatabase = ownsDatabase;
    this.#turns = turns;
    this.#busyTimeout = busyTimeout;
    this.#file = file;
    this.#name = nameOf(file);
    this.marker = marker;
    this.#checkpoints = checkpoints;
    this.#identity = file === '' ? undefined : statSync(file, { bigint: true });
    this.durability = readDurability(database, file);
    this.statements = prepareStatements(database);
  }

  /** Runs the step on the newest committed state. It takes no lock, so no writer keeps it waiting. */
  read<Result>(step: () => Result, { signal }: CallOptions = {}): Promise<Result> {
    return this.#run(() => this.#turns.take(() => this.#look(step), signal), signal);
  }

  /**
   * Runs the step in a write transaction: all of it is applied, or nothing. It may run more than once until it is. While the
   * file is locked, `peek` may find an answer that needs no writing.
   */
  write<Result>(step: () => Result, { signal }: CallOptions = {}, peek?: () => Result | undefined): Promise<Result> {
    const look = peek && ((): Result | undefined => this.#look(peek));
    return this.#run(() => this.#turns.takeTogether(step, { together: this.#together, peek: look }, signal), signal);
  }

  /** To be called within a step. */
  look(runId: string): Look {
    const found = this.statements.look.get(runId, runId) as Glance & (RecordRow | NoRow);
    this.#checkMarker(found.marker);
    return { now: found.now, row: found.runId === null ? undefined : found, fence: fenceOf(found) };
  }

  /** The time alone. To be called within a step. */
  now(): number {
    const { now, marker } = this.statements.glance.get() as Glance;
    this.#checkMarker(marker);
    return now;
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

  async #run<Result>(take: () => Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
    this.checkOpen();
    signal?.throwIfAborted();
    try {
      return await take();
    } catch (error) {
      if (signal?.aborted === true && error === signal.reason) throw error;
      throw toStoreError(error, this.#name);
    }
  }

  #attempt<Result>(step: () => Result): Result {
    this.#checkSame();
    return withoutBlocking(this.#database, this.#busyTimeout, step);
  }

  #look<Result>(step: () => Result): Result {
    return this.#attempt(() => snapshot(this.#database, step));
  }

  readonly #together = (steps: Iterable<() => unknown>): readonly Outcome[] => {
    const outcomes = this.#attempt(() => commitTogether(this.#database, steps, this.#name));
    this.#checkpoints?.wrote(outcomes.length);
    return outcomes;
  };

  /** Makes sure that the tables are those which this store has opened. */
  #checkMarker(marker: string | null): void {
    if (marker === this.marker) return;
    throw (this.#lost = stateLost(this.#name, 'its marker is another'));
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

/** The run was never leased. It may have a fence row all the same, planted by hand. */
interface NoRow {
  readonly runId: null;
  readonly fencingToken: null;
  readonly fence: number | null;
}

interface Glance {
  readonly now: number;
  readonly marker: string | null;
}
