/**
 * Hands jobs to worker processes until all are done, while workers are killed and stopped at random. Each job is done
 * under a lease and written in fenced sessions, so that no late worker changes anything.
 *
 * node examples/orchestrator/orchestrator.js --jobs 200 --workers 5 --store sqlite:./jobs.db --seed 42
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openStore } from 'lessor';
import { createActor, toPromise } from 'xstate';
import { Crew } from './crew.js';
import { expiredLeases } from './expired-leases.js';
import { createOrchestrator } from './orchestrator.machine.js';
import { randomFrom, Troubles } from './troubles.js';

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '200' },
    workers: { type: 'string', default: '5' },
    troubles: { type: 'string', default: '8' },
    stalls: { type: 'string', default: '1' },
    ttl: { type: 'string', default: '2' },
    work: { type: 'string', default: '0.1' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    batch: { type: 'string' },
    store: { type: 'string' },
  },
});
const [jobs, workers, count, ttlSeconds, workSeconds, seed] = [
  'jobs',
  'workers',
  'troubles',
  'ttl',
  'work',
  'seed',
].map((name) => Number(values[name]));
// The same batch on the same store goes on where it was left: what is done stays done.
const prefix = `${values.batch ?? `batch-${seed}`}/`;
const jobIds = Array.from({ length: jobs }, (_, index) => `${prefix}job-${String(index + 1).padStart(3, '0')}`);
const folder = values.store === undefined ? mkdtempSync(join(tmpdir(), 'lessor-orchestrator-')) : undefined;
const url = values.store ?? `sqlite:${join(folder, 'jobs.db')}`;

const start = performance.now();
const store = await openStore(url);
// One worker at least goes on.
const stalls = Math.min(Number(values.stalls), workers - 1);
const crew = new Crew({ count: workers, stalls, url, ttlSeconds, workSeconds });
const machine = createOrchestrator({ crew: crew.logic, leases: expiredLeases(store, { prefix }) });
const actor = createActor(machine, { input: { jobIds, workers, ttlSeconds } });

console.log(
  `${jobs} jobs, ${workers} workers, leases of ${ttlSeconds} s, seed ${seed}. Each write carries its lease.\n`,
);
process.once('SIGINT', () => actor.stop());
process.once('SIGTERM', () => actor.stop());
const random = randomFrom(seed);
const troubles = new Troubles({ actor, crew, count, random, workers, ttlSeconds, workSeconds, say });
let shown = '';
const progress = setInterval(showProgress, 1000);
try {
  actor.start();
  await toPromise(actor);
  await showSummary();
} finally {
  clearInterval(progress);
  await crew.end();
  await store.close();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
}

function showProgress() {
  const { done, takeOvers, refused } = actor.getSnapshot().context;
  const line =
    `${String(done).padStart(String(jobs).length)} of ${jobs} done, ${crew.busy.length} at work, ` +
    `${crew.stopped.length} stopped, ${takeOvers} take-overs, ${refused} stale writes refused`;
  if (line !== shown) say(line);
  shown = line;
}

/** What the store has, beside what the machine counted. */
async function showSummary() {
  const { takeOvers, refused } = actor.getSnapshot().context;
  const session = await store.session({ workerId: 'orchestrator', runs: jobIds, fence: 'none' });
  const documents = await Promise.all(jobIds.map((jobId) => session.run(jobId).readAll()));
  const doneOnce = documents.filter(
    ({ history = [] }) => history.filter(({ status }) => status === 'done').length === 1,
  );
  console.log(`
jobs                  ${jobs}
done exactly once     ${doneOnce.length}
workers               ${workers}, ${troubles.killed} times one was killed and replaced, ${troubles.stopped} times one was stopped and woken, ${stalls} stopped at the end of its first job until all were done
take-overs            ${takeOvers}
stale writes refused  ${refused}
duration              ${((performance.now() - start) / 1000).toFixed(1)} s`);
  if (doneOnce.length < jobs) process.exitCode = 1;
}

function say(what) {
  console.log(`${((performance.now() - start) / 1000).toFixed(1).padStart(6)} s  ${what}`);
}
