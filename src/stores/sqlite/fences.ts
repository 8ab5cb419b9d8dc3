import type { LeaseRef } from '../../lease.ts';
import { checkFenceTable, type FenceTableColumns, toFenceTableError } from '../fence-table.ts';
import { checkLeaseRef } from '../requests.ts';
import type { CallOptions } from '../store.ts';
import type { SqliteConnection } from './connection.ts';
import type { SqliteDatabase } from './database.ts';
import { fenceTableSql, unfenceTableSql } from './fence-table.ts';
import { checkTransaction, fenceTransaction } from './fence-transaction.ts';

/** The fences of what is the user's own: transactions, and tables in the leases' file. */
export class SqliteFences {
  readonly #connection: SqliteConnection;
  readonly #database: SqliteDatabase;

  constructor(connection: SqliteConnection, database: SqliteDatabase) {
    this.#connection = connection;
    this.#database = database;
  }

  fence(tx: SqliteDatabase, lease: LeaseRef): void {
    checkLeaseRef(lease);
    checkTransaction(tx);
    this.#connection.checkOpen();
    fenceTransaction(tx, lease, this.#connection.marker);
  }

  async fenceTable(table: string, columns: FenceTableColumns, options?: CallOptions): Promise<void> {
    checkFenceTable(table, columns);
    await this.#define(fenceTableSql(table, columns), table, options);
  }

  async unfenceTable(table: string, options?: CallOptions): Promise<void> {
    checkFenceTable(table, { run: table, token: table });
    await this.#define(unfenceTableSql(table), table, options);
  }

  async #define(sql: string, table: string, options: CallOptions | undefined): Promise<void> {
    try {
      await this.#connection.write(() => void this.#database.exec(sql), options);
    } catch (error) {
      throw toFenceTableError(error, table, /no such (table|column)/);
    }
  }
}
