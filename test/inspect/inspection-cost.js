/** What an inspector costs a process with 3,000 leases: medians in milliseconds of processor time, side by side. */
import { inspectLeases, LeaseRegistry } from 'lessor';
import { connectInspector } from '../../examples/inspector/connect.js';

const ROUNDS = 15;
const HEARTBEATS = 10;
const runIds = Array.from({ length: 3000 }, (_, index) => `run-${index}`);

const inspector = await connectInspector(process.argv[2]);
const inspect = inspectLeases(inspector.inspect, { limit: 10 });
const costs = [];
for (let round = 0; round < ROUNDS; round += 1) {
  costs.push({ plain: await costOf({}), inspected: await costOf({ inspect }) });
}
const median = (key) => costs.map((cost) => cost[key]).toSorted((one, other) => one - other)[ROUNDS >> 1];
console.log(JSON.stringify({ plain: Math.round(median('plain')), inspected: Math.round(median('inspected')) }));
await inspector.close();

/** Processor time does not count what else the machine is doing. */
async function costOf(options) {
  globalThis.gc();
  const start = process.cpuUsage();
  const registry = new LeaseRegistry({ ttlSeconds: 10, ...options });
  const leases = runIds.map((runId) => registry.acquire(runId, 'worker-a', 0));
  for (let now = 0; now < HEARTBEATS; now += 1) {
    for (const { leaseId, fencingToken } of leases) registry.heartbeat(leaseId, fencingToken, now);
  }
  registry.expire(100);
  const later = runIds.map((runId) => registry.acquire(runId, 'worker-b', 100));
  for (const { leaseId, fencingToken } of later) registry.release(leaseId, fencingToken);
  // The inspector sends once the process is idle.
  await new Promise((resolve) => setTimeout(resolve, 20));
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}
