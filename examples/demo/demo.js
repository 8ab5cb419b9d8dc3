/**
 * Two workers, one run, one SQLite file. worker-a is frozen in the middle of its work and loses the run; worker-b takes
 * over with a higher token; worker-a wakes up, knows nothing of this, and its late write is refused.
 *
 * Run it: npm run demo
 */
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from 'lessor';
import { Report } from './report.js';

const start = performance.now();
const folder = mkdtempSync(join(tmpdir(), 'lessor-demo-'));
const url = `sqlite:${join(folder, 'demo.db')}`;
const workers = [];

console.log('Two workers, one run, leases of 2 seconds. Each write carries its fencing token.\n');
try {
  const workerA = startWorker('worker-a', 100);
  await workerA.said('has the run');
  const workerB = startWorker('worker-b', 2);
  await workerB.said('asks for the run');
  await workerA.said('prepares line');

  show('demo', 'freezes worker-a (SIGSTOP), after its check and before its write');
  workerA.process.kill('SIGSTOP');
  await workerB.said('writes line 1');

  show('demo', 'wakes worker-a (SIGCONT)');
  workerA.process.kill('SIGCONT');
  await Promise.all([workerA.said('is done'), workerB.said('is done')]);

  const store = await openStore(url);
  console.log('\nWhat the storage has:');
  console.table(await new Report(store, 'monthly-report').lines());
  await store.close();
} finally {
  for (const worker of workers) worker.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}

/** Starts a worker. `said` waits until it says something with those words in it. */
function startWorker(workerId, lines) {
  const worker = fork(new URL('worker.js', import.meta.url), [workerId, url, String(lines)]);
  workers.push(worker);
  worker.on('message', ({ text }) => show(workerId, text));
  const said = (words) =>
    new Promise((resolve, reject) => {
      worker.on('message', ({ text }) => text.includes(words) && resolve());
      worker.once('exit', (code, signal) => reject(new Error(`${workerId} ended with ${signal ?? code}`)));
    });
  return { process: worker, said };
}

function show(who, what) {
  const seconds = ((performance.now() - start) / 1000).toFixed(2);
  console.log(`${seconds.padStart(6)} s  ${who.padEnd(9)} ${what}`);
}
