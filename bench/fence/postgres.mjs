import pg from 'pg';
import { migratePostgres, PostgresStore } from 'lessor';
import { loadService } from '../stores/services.mjs';
import { acquireAll, RUNS, sessionWrites } from './leases.mjs';

const AIM = 0.7;

/** One server, with the store's pool, one of the user's, and one connection of the user's. */
export async function openPostgres({ fsync, onEnd }) {
  const { startPostgres } = await loadService('postgres');
  const onOff = fsync ? 'on' : 'off';
  const server = await startPostgres({ fsync: onOff, full_page_writes: onOff, shared_buffers: '128MB' });
  onEnd(() => server.close());
  const pool = new pg.Pool({ connectionString: server.url });
  pool.on('error', () => {});
  onEnd(() => pool.end());
  const own = new pg.Pool({ connectionString: server.url, max: 1 });
  own.on('error', () => {});
  onEnd(() => own.end());
  await migratePostgres({ pool });
  const store = await PostgresStore.open({ pool });
  onEnd(() => store.close());
  const leases = await acquireAll(store);
  await createTables(pool, leases);
  await store.fenceTable('fenced', { run: 'id', token: 'token' });
  const client = await pool.connect();
  client.on('error', () => {});
  onEnd(() => client.release());
  const { rows } = await client.query('SHOW server_version');
  return {
    title: `PostgreSQL ${rows[0].server_version.split(' ')[0]}, fsync ${onOff}`,
    store,
    leases,
    writes: [...writesBy(store, client, own), sessionWrites(store, AIM)],
  };
}

async function createTables(pool, leases) {
  for (const table of ['plain', 'fenced']) {
    await pool.query(`CREATE TABLE ${table} (id text PRIMARY KEY, token bigint, n integer) WITH (fillfactor = 50)`);
    const runIds = leases.map(({ runId }) => runId);
    await pool.query(`INSERT INTO ${table} SELECT id, 1, 0 FROM unnest($1::text[]) AS id`, [runIds]);
  }
}

function writesBy(store, client, pool) {
  const run = (connection, table, lease) => {
    const text = `UPDATE ${table} SET n = n + 1, token = $1 WHERE id = $2`;
    return connection.query({ name: table, text, values: [lease.fencingToken, lease.runId] });
  };
  const statement = (table) => (lease) => run(client, table, lease);
  const update = statement('plain');
  const whole = (lease) => store.transaction(pool, lease, (connection) => run(connection, 'plain', lease));
  const wholePlain = async (lease) => {
    const connection = await pool.connect();
    await connection.query('BEGIN');
    await run(connection, 'plain', lease);
    await connection.query('COMMIT');
    connection.release();
  };
  const transaction = (isFenced) => async (lease) => {
    await client.query('BEGIN');
    if (isFenced) await store.fence(client, lease);
    await update(lease);
    await client.query('COMMIT');
  };
  const bulk = (table) => () => client.query(`UPDATE ${table} SET n = n + 1, token = 1`);
  return [
    { what: 'a transaction, store.transaction', fenced: whole, plain: wholePlain, aim: AIM },
    {
      what: 'a transaction, store.fence (a round trip more)',
      fenced: transaction(true),
      plain: transaction(false),
      aim: AIM,
    },
    { what: 'one update, fenced table', fenced: statement('fenced'), plain: update, aim: AIM },
    { what: `${RUNS} rows in one update, fenced table`, fenced: bulk('fenced'), plain: bulk('plain') },
    { what: 'store.transaction, the first under each lease', fenced: whole, plain: wholePlain, isFirst: true },
  ];
}
