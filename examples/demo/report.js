/**
 * The storage: a table of the demo's own, in the same SQLite file as the leases. Each write carries the fencing token of
 * the lease under which it was prepared, and the storage takes it only while that lease is the newest of its run. Check
 * and write are one statement, so nothing can come in between. That is a fence.
 */
import Database from 'libsql';

export class Report {
  #database;
  #insert;

  constructor(file) {
    this.#database = new Database(file);
    this.#database.exec('PRAGMA busy_timeout = 2000');
    this.#database.exec('CREATE TABLE IF NOT EXISTS report (line INTEGER, worker TEXT, token INTEGER)');
    this.#insert = this.#database.prepare(`
      INSERT INTO report (line, worker, token)
      SELECT ?, worker_id, fencing_token
        FROM lessor_lease
       WHERE run_id = ? AND fencing_token = ? AND acquisition_id = ?
         AND expires_at IS NOT NULL -- not released
    `);
  }

  /** Writes the line, and tells whether the storage took it. */
  write(line, { runId, fencingToken, acquisitionId }) {
    return this.#insert.run(line, runId, fencingToken, acquisitionId).changes === 1;
  }

  lines() {
    return this.#database.prepare('SELECT line, worker, token FROM report ORDER BY rowid').all();
  }

  close() {
    this.#database.close();
  }
}
