import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { SqliteStore } from 'lessor';
import { load, versionOf } from './packages.mjs';

const TTL_SECONDS = 30;

/** A file for each candidate. SQLite's calls are synchronous, so that 32 clients of one process take turns. */
export async function openSqlite({ fsync, onEnd }) {
  const folder = mkdtempSync(join(tmpdir(), 'lessor-bench-'));
  onEnd(() => rmSync(folder, { recursive: true, force: true }));
  const [database, ...raws] = ['lessor', 'raw', 'bare'].map((name) => new Database(join(folder, `${name}.db`)));
  const store = await SqliteStore.open({ database, ownsDatabase: true });
  onEnd(() => store.close());
  for (const each of raws) {
    onEnd(() => each.close());
    each.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON');
  }
  const setSync = (level) => [database, ...raws].forEach((each) => each.exec(`PRAGMA synchronous = ${level}`));
  const usual = fsync ? 'FULL' : 'OFF';
  setSync(usual);
  const version = database.prepare('SELECT sqlite_version() AS version').get().version;
  return {
    title: `SQLite ${version} by libsql, synchronous = ${usual}`,
    store,
    others: [
      { name: 'raw upsert', aim: 0.8, once: raw(raws[0]) },
      { name: 'raw upsert without a token', once: bare(raws[1]) },
      { name: versionOf('proper-lockfile'), once: properLockfile(folder) },
    ],
    renewAim: 20,
    quickly: async (work) => {
      setSync('OFF');
      return work().finally(() => setSync(usual));
    },
  };
}

/** With a token, read in the same transaction, since this driver returns no rows from what it writes. */
function raw(database) {
  database.exec(`CREATE TABLE raw_lock (name TEXT PRIMARY KEY, owner TEXT NOT NULL, token INTEGER NOT NULL,
    expires_at REAL) WITHOUT ROWID`);
  const upsert = database.prepare(`INSERT INTO raw_lock VALUES (?, ?, 1, unixepoch('subsec') + ?)
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = token + 1, expires_at = excluded.expires_at
    WHERE raw_lock.expires_at IS NULL OR raw_lock.expires_at <= unixepoch('subsec')`);
  const read = database.prepare('SELECT token FROM raw_lock WHERE name = ?');
  const acquire = database.transaction((runId, owner) => {
    const { changes } = upsert.run(runId, owner, TTL_SECONDS);
    return changes === 1 ? read.get(runId).token : null;
  }).immediate;
  const release = database.prepare('UPDATE raw_lock SET expires_at = NULL WHERE name = ? AND owner = ? AND token = ?');
  return async (runId) => {
    const owner = randomUUID();
    const token = acquire(runId, owner);
    if (token === null) throw new Error(`${runId} was not granted`);
    if (release.run(runId, owner, token).changes !== 1) throw new Error(`${runId} was not released`);
  };
}

/** Two statements, each a transaction of its own. */
function bare(database) {
  database.exec('CREATE TABLE raw_lock (name TEXT PRIMARY KEY, owner TEXT NOT NULL, expires_at REAL) WITHOUT ROWID');
  const acquire = database.prepare(`INSERT INTO raw_lock VALUES (?, ?, unixepoch('subsec') + ?)
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at
    WHERE raw_lock.expires_at IS NULL OR raw_lock.expires_at <= unixepoch('subsec')`);
  const release = database.prepare('UPDATE raw_lock SET expires_at = NULL WHERE name = ? AND owner = ?');
  return async (runId) => {
    const owner = randomUUID();
    if (acquire.run(runId, owner, TTL_SECONDS).changes !== 1) throw new Error(`${runId} was not granted`);
    if (release.run(runId, owner).changes !== 1) throw new Error(`${runId} was not released`);
  };
}

/** A folder beside the file, made and removed: nothing is synced, and there is no token. */
function properLockfile(folder) {
  const { lock } = load('proper-lockfile');
  return async (runId) => {
    const release = await lock(join(folder, runId), { realpath: false, stale: TTL_SECONDS * 1000 });
    await release();
  };
}
