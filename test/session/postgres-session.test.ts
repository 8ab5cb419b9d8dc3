import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migratePostgres, PostgresStore } from '../../src/stores/postgres.ts';
import { findPostgres, openPool, startPostgres, type Postgres } from '../services/postgres.ts';
import { ask, freshRun, granted, untilPassed } from '../stores/postgres-fixtures.ts';
import { sessionRules, severalRunsRules } from './session-rules.ts';

const found = await findPostgres();

// Where it cannot be had: a line says so on a laptop, and CI fails.
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

  it('TK4. After a take-over the worker reads only once it has raised the fence', async () => {
    await pool.query('CREATE TABLE IF NOT EXISTS results (run_id text PRIMARY KEY, result text)');
    const late = await granted(store, ask(freshRun(), { workerId: 'worker-a', ttlSeconds: 0.3 }));
    const client = await pool.connect();
    await client.query('BEGIN');
    await store.fence(client, late);
    await client.query('INSERT INTO results VALUES ($1, $2)', [late.runId, 'of the older worker']);
    await untilPassed(pool, 0.3);
    const next = await granted(store, ask(late.runId, { workerId: 'worker-b' }));

    let opened = false;
    const opening = store.session({ workerId: 'worker-b', runs: [next.runId], fence: next }).then((session) => {
      opened = true;
      return session;
    });
    await untilPassed(pool, 0.2);
    expect(opened).toBe(false);
    await client.query('COMMIT');
    client.release();
    const session = await opening;
    const { rows } = await pool.query('SELECT result FROM results WHERE run_id = $1', [next.runId]);
    session.run(next.runId).write('seen', rows[0].result);
    await session.commit();
    const again = await store.session({ workerId: 'worker-b', runs: [next.runId], fence: next });
    expect(await again.run(next.runId).read('seen')).toBe('of the older worker');
    await expect(store.session({ workerId: 'worker-a', runs: [late.runId], fence: late })).rejects.toMatchObject({
      reason: 'superseded',
    });
  });
});
