import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { SqliteStore } from 'lessor';
import { acquireAll, RUNS, sessionWrites } from './leases.mjs';

const AIM = 0.8;
const TRIGGER_AIM = 0.7;

/** One file, with the store's connection and one of the user's. Synced, as the store has it, or not waiting for the disk. */
export async function openSqlite({ fsync, onEnd }) {
  const folder = mkdtempSync(join(tmpdir(), 'lessor-bench-'));
  onEnd(() => rmSync(folder, { recursive: true, force: true }));
  const [database, tx] = [1, 2].map(() => new Database(join(folder, 'leases.db')));
  const store = await SqliteStore.open({ database, ownsDatabase: true });
  onEnd(() => store.close());
  onEnd(() => tx.close());
  tx.exec('PRAGMA fullfsync = ON');
  const synchronous = fsync ? 'FULL' : 'OFF';
  for (const each of [database, tx]) each.exec(`PRAGMA synchronous = ${synchronous}`);
  const leases = await acquireAll(store);
  createTables(tx, leases);
  await store.fenceTable('fenced', { run: 'id', token: 'token' });
  const version = tx.prepare('SELECT sqlite_version() AS version').get().version;
  return {
    title: `SQLite ${version} by libsql, synchronous = ${synchronous}`,
    store,
    leases,
    writes: [...writesBy(store, tx), sessionWrites(store, AIM)],
  };
}

function createTables(tx, leases) {
  for (const table of ['plain', 'fenced']) {
    tx.exec(`CREATE TABLE ${table} (id TEXT PRIMARY KEY, token INTEGER, n INTEGER)`);
    const insert = tx.prepare(`INSERT INTO ${table} VALUES (?, 1, 0)`);
    for (const { runId } of leases) insert.run(runId);
  }
}

function writesBy(store, tx) {
  const update = (table) => tx.prepare(`UPDATE ${table} SET n = n + 1, token = ? WHERE id = ?`);
  const [plain, fenced] = [update('plain'), update('fenced')];
  const transaction = (isFenced) => (lease) => {
    tx.exec('BEGIN IMMEDIATE');
    if (isFenced) store.fence(tx, lease);
    plain.run(lease.fencingToken, lease.runId);
    tx.exec('COMMIT');
  };
  const statement = (prepared) => (lease) => prepared.run(lease.fencingToken, lease.runId);
  const bulk = (table) => () => tx.exec(`UPDATE ${table} SET n = n + 1, token = 1`);
  return [
    { what: 'a transaction, store.fence', fenced: transaction(true), plain: transaction(false), aim: AIM },
    { what: 'one update, fenced table', fenced: statement(fenced), plain: statement(plain), aim: TRIGGER_AIM },
    { what: `${RUNS} rows in one update, fenced table`, fenced: bulk('fenced'), plain: bulk('plain') },
  ];
}
