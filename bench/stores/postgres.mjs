import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { migratePostgres, PostgresStore } from 'lessor';
import { loadService } from './services.mjs';

const TTL_SECONDS = 30;

/** One server, and one pool for all candidates with a connection for each client. */
export async function openPostgres({ fsync, onEnd }) {
  const { startPostgres } = await loadService('postgres');
  const onOff = fsync ? 'on' : 'off';
  const server = await startPostgres({ fsync: onOff, full_page_writes: onOff, shared_buffers: '128MB' });
  onEnd(() => server.close());
  const pool = new pg.Pool({ connectionString: server.url, max: 32 });
  pool.on('error', () => {});
  onEnd(() => pool.end());
  await migratePostgres({ pool });
  const store = await PostgresStore.open({ pool });
  onEnd(() => store.close());
  const { rows } = await pool.query('SHOW server_version');
  return {
    title: `PostgreSQL ${rows[0].server_version.split(' ')[0]}, fsync ${onOff}`,
    store,
    others: [
      { name: 'raw upsert', aim: 0.9, once: await raw(pool) },
      { name: 'pg_try_advisory_lock', once: advisory(pool) },
    ],
    renewAim: 20,
  };
}

async function raw(pool) {
  await pool.query(
    'CREATE TABLE raw_lock (name text PRIMARY KEY, owner text NOT NULL, token bigint NOT NULL, expires_at timestamptz)',
  );
  const acquire = {
    name: 'raw_acquire',
    text: `INSERT INTO raw_lock AS l VALUES ($1, $2, 1, clock_timestamp() + make_interval(secs => $3))
      ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = l.token + 1, expires_at = excluded.expires_at
      WHERE l.expires_at IS NULL OR l.expires_at <= clock_timestamp() RETURNING token`,
  };
  const release = {
    name: 'raw_release',
    text: 'UPDATE raw_lock SET expires_at = NULL WHERE name = $1 AND owner = $2 AND token = $3',
  };
  return async (runId) => {
    const owner = randomUUID();
    const { rows } = await pool.query({ ...acquire, values: [runId, owner, TTL_SECONDS] });
    if (rows.length !== 1) throw new Error(`${runId} was not granted`);
    const { rowCount } = await pool.query({ ...release, values: [runId, owner, rows[0].token] });
    if (rowCount !== 1) throw new Error(`${runId} was not released`);
  };
}

/** Held by a connection and gone with it: no ttl, no token, nothing written. */
function advisory(pool) {
  const ask = async (client, name, text, runId) => (await client.query({ name, text, values: [runId] })).rows[0].done;
  const acquire = 'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS done';
  const release = 'SELECT pg_advisory_unlock(hashtextextended($1, 0)) AS done';
  return async (runId) => {
    const client = await pool.connect();
    try {
      if (!(await ask(client, 'advisory_acquire', acquire, runId))) throw new Error(`${runId} was not granted`);
      if (!(await ask(client, 'advisory_release', release, runId))) throw new Error(`${runId} was not released`);
    } finally {
      client.release();
    }
  };
}
