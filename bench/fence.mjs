/**
 * What does a fence cost? The same write with and without it, in turn, in one run, as a ratio of medians: 1.00 is free.
 * Each ratio is of writes per second by one worker on one connection, so it has the extra round trip in it.
 *
 *   npm run build && node bench/fence.mjs [postgres://...] [redis://...] [--rounds N]
 *
 * SQLite is always measured, on a file in the system's temporary folder. The servers' databases are written to: give
 * ones of their own.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { openStore, SqliteStore } from 'lessor';

const RUNS = 50;

const { values, positionals } = parseArgs({
  options: { rounds: { type: 'string', default: '15' } },
  allowPositionals: true,
});
const rounds = Number(values.rounds);
const urlOf = (scheme) => positionals.find((url) => url.startsWith(scheme));

await benchSqlite('FULL');
await benchSqlite('NORMAL');
if (urlOf('postgres')) await benchPostgres(urlOf('postgres'));
if (urlOf('redis')) await benchSessions('redis', await openStore(urlOf('redis')));

/** FULL, as the store has it on its own connection: a commit is on the disk before it returns. NORMAL waits for no disk. */
async function benchSqlite(synchronous) {
  const folder = mkdtempSync(join(tmpdir(), 'lessor-bench-'));
  const Driver = sqliteDriver();
  const file = join(folder, 'leases.db');
  const store = await SqliteStore.open({ database: new Driver(file), ownsDatabase: true });
  const tx = new Driver(file);
  tx.exec(`PRAGMA synchronous = ${synchronous}`);
  for (const table of ['plain', 'fenced']) {
    tx.exec(`CREATE TABLE ${table} (id TEXT PRIMARY KEY, token INTEGER, n INTEGER)`);
  }
  const leases = await acquireAll(store);
  for (const { runId } of leases) {
    for (const table of ['plain', 'fenced']) tx.prepare(`INSERT INTO ${table} VALUES (?, 1, 0)`).run(runId);
  }
  await store.fenceTable('fenced', { run: 'id', token: 'token' });
  const update = (table) => tx.prepare(`UPDATE ${table} SET n = n + 1, token = ? WHERE id = ?`);
  const [plain, fenced] = [update('plain'), update('fenced')];
  const transaction = (fence) => (lease) => {
    tx.exec('BEGIN IMMEDIATE');
    if (fence) store.fence(tx, lease);
    plain.run(lease.fencingToken, lease.runId);
    tx.exec('COMMIT');
  };
  const statement = (prepared) => (lease) => prepared.run(lease.fencingToken, lease.runId);
  await compare(`SQLite ${synchronous}: a transaction, store.fence`, leases, transaction(false), transaction(true));
  await compare(`SQLite ${synchronous}: one update, fenced table`, leases, statement(plain), statement(fenced));
  const bulk = (table) => () => tx.exec(`UPDATE ${table} SET n = n + 1, token = 1`);
  await compare(
    `SQLite ${synchronous}: ${RUNS} rows in one update, fenced table`,
    leases,
    bulk('plain'),
    bulk('fenced'),
  );
  tx.close();
  if (synchronous === 'FULL') await benchSessions('SQLite FULL', store, leases);
  else await store.close();
  rmSync(folder, { recursive: true });
}

async function benchPostgres(url) {
  const { default: pg } = await import('pg');
  const { migratePostgres, PostgresStore } = await import('../dist/src/stores/postgres.js');
  const pool = new pg.Pool({ connectionString: url });
  await migratePostgres({ pool });
  const store = await PostgresStore.open({ pool });
  const leases = await acquireAll(store);
  for (const table of ['plain', 'fenced']) {
    await pool.query(`DROP TABLE IF EXISTS ${table}`);
    await pool.query(`CREATE TABLE ${table} (id text PRIMARY KEY, token bigint, n integer) WITH (fillfactor = 50)`);
    await pool.query(`INSERT INTO ${table} SELECT id, 1, 0 FROM unnest($1::text[]) AS id`, [
      leases.map(({ runId }) => runId),
    ]);
  }
  await store.fenceTable('fenced', { run: 'id', token: 'token' });
  const client = await pool.connect();
  const statement = (table) => (lease) =>
    client.query({
      name: table,
      text: `UPDATE ${table} SET n = n + 1, token = $1 WHERE id = $2`,
      values: [lease.fencingToken, lease.runId],
    });
  const transaction = (fence) => async (lease) => {
    await client.query('BEGIN');
    if (fence) await store.fence(client, lease);
    await statement('plain')(lease);
    await client.query('COMMIT');
  };
  await compare('PostgreSQL: a transaction, store.fence', leases, transaction(false), transaction(true));
  await compare('PostgreSQL: one update, fenced table', leases, statement('plain'), statement('fenced'));
  const bulk = (table) => () => client.query(`UPDATE ${table} SET n = n + 1, token = 1`);
  await compare(`PostgreSQL: ${RUNS} rows in one update, fenced table`, leases, bulk('plain'), bulk('fenced'));
  client.release();
  await benchSessions('PostgreSQL', store, leases);
  await pool.end();
}

/** A session's reading and commit; without a fence it validates all the same. */
async function benchSessions(name, store, given) {
  const leases = given ?? (await acquireAll(store));
  const session = (fenced) => async (lease) => {
    const { workerId, runId } = lease;
    const open = await store.session({ workerId, runs: [runId], fence: fenced ? lease : 'none' });
    const job = open.run(runId);
    job.write('n', ((await job.read('n')) ?? 0) + 1);
    await open.commit();
  };
  await compare(`${name}: a session's reading and commit`, leases, session(false), session(true));
  for (const lease of leases) await store.release(lease);
  await store.close();
}

/** Both in turn, each over all leases, after a round that does not count. */
async function compare(what, leases, plain, fenced) {
  const times = { plain: [], fenced: [] };
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, write] of Object.entries({ plain, fenced })) {
      const startedAt = performance.now();
      for (const lease of leases) await write(lease);
      if (round > 0) times[name].push((performance.now() - startedAt) / leases.length);
    }
  }
  const [without, within] = [median(times.plain), median(times.fenced)];
  const milliseconds = `${without.toFixed(3)} ms without, ${within.toFixed(3)} ms with`;
  console.log(`${what.padEnd(55)} ${(without / within).toFixed(2)}   (${milliseconds})`);
}

function median(numbers) {
  return numbers.toSorted((one, two) => one - two)[Math.floor(numbers.length / 2)];
}

async function acquireAll(store) {
  const leases = [];
  for (let index = 0; index < RUNS; index += 1) {
    const request = { runId: `bench ${index} ${randomUUID()}`, workerId: 'bench', ttlSeconds: 3600 };
    leases.push((await store.acquire({ ...request, acquisitionId: randomUUID() })).lease);
  }
  return leases;
}

function sqliteDriver() {
  const require = createRequire(import.meta.url);
  try {
    return require('better-sqlite3');
  } catch {
    return require('libsql');
  }
}
