import type { SqliteDatabase, SqliteStatement } from './database.ts';

/** The columns under the names of `LeaseRow`. */
const ROW = `lease.run_id AS runId, worker_id AS workerId, fencing_token AS fencingToken, acquisition_id AS acquisitionId,
  expires_at AS expiresAt, ttl_seconds AS ttlSeconds, revoked_at AS revokedAt`;

/** Those under the names of `RecordRow`. */
const RECORD = `${ROW}, acquired_at AS acquiredAt, revoked_by AS revokedBy, revoked_reason AS revokedReason`;

/** The token of the run's fence row, or null. */
const FENCE = '(SELECT fence.fencing_token FROM lessor_fence AS fence WHERE fence.run_id = lease.run_id) AS fence';

/** The time, and the marker of the file that the tables are in. */
const GLANCE = `unixepoch('subsec') AS now, (SELECT value FROM lessor_meta WHERE key = 'marker') AS marker`;

/** Every statement of the store, by what it does. None reads what it writes: see `SqliteDatabase`. */
const SQL = {
  glance: `SELECT ${GLANCE}`,

  /** The same, with one run's record, and its fence row's token also where it has no record. */
  look: `SELECT ${GLANCE}, (SELECT fencing_token FROM lessor_fence WHERE run_id = ?) AS fence, ${RECORD}
    FROM (SELECT 1) LEFT JOIN lessor_lease AS lease ON lease.run_id = ?`,

  /** The rows of a JSON array of runs, each looked up by its key. */
  rows: `SELECT ${ROW} FROM json_each(?) AS asked CROSS JOIN lessor_lease AS lease ON lease.run_id = asked.value`,

  /** Records in the order of their runs: those from a run on, and those after one. */
  recordsFrom: `SELECT ${RECORD}, ${FENCE} FROM lessor_lease AS lease WHERE run_id >= ? ORDER BY run_id LIMIT ?`,
  recordsAfter: `SELECT ${RECORD}, ${FENCE} FROM lessor_lease AS lease WHERE run_id > ? ORDER BY run_id LIMIT ?`,

  /** The run's newest lease. */
  keep: `INSERT INTO lessor_lease (run_id, worker_id, fencing_token, acquisition_id, acquired_at, expires_at, ttl_seconds)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (run_id) DO UPDATE SET worker_id = excluded.worker_id, fencing_token = excluded.fencing_token,
      acquisition_id = excluded.acquisition_id, acquired_at = excluded.acquired_at, expires_at = excluded.expires_at,
      ttl_seconds = excluded.ttl_seconds, revoked_by = NULL, revoked_reason = NULL, revoked_at = NULL`,

  /** A live lease under a new acquisition: the token and the moment it began stay. */
  extend: `UPDATE lessor_lease SET acquisition_id = ?, expires_at = ?, ttl_seconds = ? WHERE run_id = ?`,

  /** The fence row of a token goes over to its new acquisition, else the fence would refuse the new handle. */
  moveFence: `UPDATE lessor_fence SET acquisition_id = ? WHERE run_id = ? AND fencing_token = ?`,

  /** The live leases of a JSON array of runs, none shortened. */
  renew: `UPDATE lessor_lease SET expires_at = max(expires_at, ?), ttl_seconds = ?
    WHERE run_id IN (SELECT value FROM json_each(?))`,

  fenceRow: 'SELECT fencing_token AS fencingToken, acquisition_id AS acquisitionId FROM lessor_fence WHERE run_id = ?',

  /** Writes also where the fence stands already: a transaction that has written has the file's lock. */
  raiseFence: `INSERT INTO lessor_fence (run_id, fencing_token, acquisition_id) VALUES (?, ?, ?)
    ON CONFLICT (run_id) DO UPDATE SET fencing_token = excluded.fencing_token, acquisition_id = excluded.acquisition_id`,

  document: 'SELECT version, json FROM lessor_document WHERE run_id = ?',
  writeDocument: `INSERT INTO lessor_document (run_id, version, json) VALUES (?, ?, ?)
    ON CONFLICT (run_id) DO UPDATE SET version = excluded.version, json = excluded.json`,

  /**
   * Frees exactly this lease, in the file of this marker, without a look before. The row stays: without the last token that
   * was issued, the next one could repeat it.
   */
  release: `UPDATE lessor_lease SET expires_at = NULL
    WHERE run_id = ? AND worker_id = ? AND acquisition_id = ? AND fencing_token = coalesce(?, fencing_token)
      AND expires_at IS NOT NULL AND (SELECT value FROM lessor_meta WHERE key = 'marker') = ?`,
  revoke: `UPDATE lessor_lease SET expires_at = NULL, revoked_by = ?, revoked_reason = ?, revoked_at = ? WHERE run_id = ?`,
} as const;

export type SqliteStatements = Readonly<Record<keyof typeof SQL, SqliteStatement>>;

/** Prepares each statement, once. */
export function prepareStatements(database: SqliteDatabase): SqliteStatements {
  const prepared = Object.entries(SQL).map(([name, sql]) => [name, database.prepare(sql)] as const);
  return Object.fromEntries(prepared) as SqliteStatements;
}
