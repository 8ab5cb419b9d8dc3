import { afterAll, beforeAll, describe, it } from 'vitest';
import type pg from 'pg';
import type { LeaseStore } from '../../src/stores/store.ts';
import { migratePostgres, PostgresStore } from '../../src/stores/postgres.ts';
import { testLeaseStore } from '../../src/testing/store-suite.ts';
import { findPgbouncer, startPgbouncer, type Pgbouncer } from '../services/pgbouncer.ts';
import { findPostgres, openPool, startPostgres, type Postgres } from '../services/postgres.ts';
import { startProxy, type Proxy } from '../services/proxy.ts';

const found = await findPostgres();
const foundPgbouncer = found && (await findPgbouncer());

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.skipIf(found === null)('PostgreSQL', () => {
  let server: Postgres;
  let pool: pg.Pool;
  let proxy: Proxy;

  beforeAll(async () => {
    server = await startPostgres();
    proxy = await startProxy(server.port);
    pool = openPool(server.url);
    await migratePostgres({ pool });
  }, 60_000);

  afterAll(async () => {
    await pool.end();
    await proxy.close();
    await server.close();
  });

  const open = (): Promise<LeaseStore> => PostgresStore.open({ pool });

  testLeaseStore(
    { describe, it },
    {
      name: 'the PostgreSQL store',
      create: open,
      ttlSeconds: 1,
      timePasses: true,
      advance: (seconds) => untilPassed(pool, seconds),
      reopen: open,
      unreachable: async () => {
        proxy.set('pass');
        const store = await PostgresStore.open({ url: `postgres://postgres@127.0.0.1:${proxy.port}/postgres` });
        proxy.set('refuse');
        return store;
      },
      plantToken: async (_store, runId, fencingToken) => {
        await pool.query(
          `INSERT INTO lessor.lease
             (run_id, worker_id, fencing_token, acquisition_id, ttl_seconds, acquired_at, expires_at, released_at)
           VALUES ($1, 'planted', $2, 'planted', 1, now(), now(), now())
           ON CONFLICT (run_id) DO UPDATE SET fencing_token = excluded.fencing_token`,
          [runId, fencingToken],
        );
      },
    },
  );
});

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.skipIf(foundPgbouncer === null)(
  'PostgreSQL behind a pooler in transaction mode, in a database of English order',
  () => {
    let server: Postgres;
    let pooler: Pgbouncer;
    let pool: pg.Pool;

    beforeAll(async () => {
      server = await startPostgres();
      const url = await server.createDatabase(
        'english',
        `TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'`,
      );
      await migratePostgres({ url, schema: 'It\'s "ours"' });
      pooler = await startPgbouncer(server, 'english', { connections: 5 });
      pool = openPool(pooler.url);
    }, 60_000);

    afterAll(async () => {
      await pool.end();
      await pooler.close();
      await server.close();
    });

    const open = (): Promise<LeaseStore> => PostgresStore.open({ pool, schema: 'It\'s "ours"' });

    testLeaseStore(
      { describe, it },
      {
        name: 'the PostgreSQL store behind pgbouncer',
        create: open,
        ttlSeconds: 1,
        timePasses: true,
        advance: (seconds) => untilPassed(pool, seconds),
        reopen: open,
        takeOverRounds: 200,
      },
    );
  },
);

/** Waits until the server's own clock has moved by so much. */
async function untilPassed(pool: pg.Pool, seconds: number): Promise<void> {
  const ask = async (): Promise<number> =>
    Number((await pool.query('SELECT extract(epoch FROM clock_timestamp()) AS now')).rows[0].now);
  const until = (await ask()) + seconds;
  for (let now = await ask(); now < until; now = await ask()) {
    await new Promise((resolve) => setTimeout(resolve, (until - now) * 1000 + 1));
  }
}
