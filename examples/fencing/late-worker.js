/**
 * A worker that stalls between its check and its write, and a table that does not let it write late. Its run is taken over
 * meanwhile, and the table is written by SQL that knows nothing of leases but the number it was given.
 *
 *   node examples/fencing/late-worker.js
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'libsql';
import { SqliteStore } from 'lessor';

const folder = mkdtempSync(join(tmpdir(), 'lessor-late-worker-'));
const file = join(folder, 'leases.db');
const store = await SqliteStore.open({ database: new Database(file), ownsDatabase: true });
const app = new Database(file);
app.exec(
  `CREATE TABLE job (id TEXT PRIMARY KEY, status TEXT, fencing_token INTEGER); INSERT INTO job (id) VALUES ('job-42')`,
);
await store.fenceTable('job', { run: 'id', token: 'fencing_token' });

const acquire = async (workerId) => {
  const request = { runId: 'job-42', workerId, acquisitionId: crypto.randomUUID(), ttlSeconds: 0.2 };
  const { lease } = await store.acquire(request);
  console.log(`${workerId} has job-42, token ${lease.fencingToken}`);
  return lease;
};

const write = (lease, status) => {
  try {
    app.prepare(`UPDATE job SET status = ?, fencing_token = ? WHERE id = 'job-42'`).run(status, lease.fencingToken);
    console.log(`${lease.workerId} writes "${status}"`);
  } catch (error) {
    console.log(`${lease.workerId} is refused: ${error.message}`);
  }
};

const late = await acquire('worker-a');
write(late, 'running');
const { state } = await store.read('job-42');
console.log(`worker-a looks: the run is ${state}, all is well. Then it stalls`);
await sleep(250);

const next = await acquire('worker-b');
write(late, 'late, and worker-b has written nothing yet');
write(next, 'done');
write(late, 'late, over what worker-b has done');
console.log(`job-42 is "${app.prepare('SELECT status FROM job').get().status}"`);

app.close();
await store.close();
rmSync(folder, { recursive: true });
