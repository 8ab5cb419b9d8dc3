/**
 * Does the registry forget? Ten million distinct runs acquired and released; the heap after the first hundred thousand
 * and at the end. Ends with 1 when it grew by 20 MB or more.
 *
 *   npm run build && node --expose-gc bench/registry-heap.mjs [runs]
 */
import { LeaseRegistry } from 'lessor';

const runs = Number(process.argv[2] ?? 10_000_000);
const registry = new LeaseRegistry({ ttlSeconds: 10 });

function heapMegabytes() {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 1e6;
}

let first = 0;
for (let index = 1; index <= runs; index += 1) {
  const { leaseId, fencingToken } = registry.acquire(`run-${index}`, 'worker-a', index / 1000);
  if (!registry.release(leaseId, fencingToken)) throw new Error(`run-${index} was not released`);
  if (index === 100_000) first = heapMegabytes();
  if (index % 1_000_000 === 0) console.error(`${index / 1e6} million runs, heap ${heapMegabytes().toFixed(1)} MB`);
}
const growth = heapMegabytes() - first;
console.log(`${runs} runs: the heap grew by ${growth.toFixed(1)} MB since the first 100,000`);
process.exitCode = growth < 20 ? 0 : 1;
