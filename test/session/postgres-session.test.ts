import type pg from 'pg';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { migratePostgres, PostgresStore } from '../../src/stores/postgres.ts';
import { findPostgres, openPool, startPostgres, type Postgres } from '../services/postgres.ts';
import { untilPassed } from '../stores/postgres-fixtures.ts';
import { sessionRules, severalRunsRules } from './session-rules.ts';

const found = await findPostgres();

describe.skipIf(found === null)('sessions on PostgreSQL', () => {
  let server: Postgres;
  let pool: pg.Pool;
  let store: PostgresStore;

  beforeAll(async () => {
    server = await startPostgres();
    pool = openPool(server.url);
    await migratePostgres({ pool });
    store = await PostgresStore.open({ pool });
  }, 60_000);

  afterAll(async () => {
    await store.close();
    await pool.end();
    await server.close();
  });

  it.each(Object.entries({ ...sessionRules, ...severalRunsRules }))('%s', async (_title, rule) => {
    await rule({ store, ttlSeconds: 0.3, advance: (seconds) => untilPassed(pool, seconds) });
  });
});
