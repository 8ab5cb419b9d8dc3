import type pg from 'pg';

/** A transaction of the user's, on a connection of its own. */
export interface Transaction {
  readonly client: pg.PoolClient;
  /** Gives the connection back. */
  end(how: 'COMMIT' | 'ROLLBACK'): Promise<void>;
}

export async function openTransaction(pool: pg.Pool, isolation: string): Promise<Transaction> {
  const client = await pool.connect();
  await client.query(`BEGIN ISOLATION LEVEL ${isolation}`);
  return {
    client,
    end: async (how) => {
      try {
        await client.query(how);
      } finally {
        client.release();
      }
    },
  };
}
