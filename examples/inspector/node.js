/**
 * A process that looks after 3,000 runs, of which the inspector sees a few. Without an inspector it runs all the same.
 *
 * Run it: node examples/inspector/node.js [URL]
 */
import { inspectLeases, LeaseRegistry } from 'lessor';
import { connectInspector } from './connect.js';

const RUNS = 3000;
const ROUNDS = 5;

const url = process.argv[2] ?? 'ws://127.0.0.1:8080';
const inspector = await connectInspector(url);
console.log(inspector ? `Inspected at ${url}` : `No inspector at ${url}: going on without one`);

const runIds = Array.from({ length: RUNS }, (_, index) => `${index % 200 === 0 ? 'nightly' : 'hourly'}-${index}`);
const registry = new LeaseRegistry({
  ttlSeconds: 10,
  inspect: inspector
    ? inspectLeases(inspector.inspect, { only: (id) => id.startsWith('nightly'), limit: 10 })
    : undefined,
});

// The time is passed in: each round is 3 seconds later, and takes a tenth of one to be watched.
let now = 0;
for (const runId of runIds) registry.acquire(runId, 'worker-a', now);
for (let round = 0; round < ROUNDS; round += 1) {
  await new Promise((resolve) => setTimeout(resolve, 100));
  now += 3;
  // Every third lease gets no heartbeat: its worker is gone.
  const alive = registry.leases().filter(({ fencingToken }) => fencingToken % 3 !== 0);
  for (const { leaseId, fencingToken } of alive) registry.heartbeat(leaseId, fencingToken, now);
}
const lapsed = registry.expire(now);
for (const { runId } of lapsed) registry.acquire(runId, 'worker-b', now);
console.log(`${RUNS} runs, ${lapsed.length} of them taken over by worker-b`);

await inspector?.close();
