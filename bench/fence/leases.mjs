/** What is written under: some leases that outlast the bench. And the write that every store has: a session's. */
import { randomUUID } from 'node:crypto';

export const RUNS = 50;

export async function acquireAll(store) {
  const leases = [];
  for (let index = 0; index < RUNS; index += 1) leases.push(await acquire(store, `bench ${index} ${randomUUID()}`));
  return leases;
}

/** Gives the lease back and acquires its run again. */
export async function acquireAnew(store, lease) {
  await store.release(lease);
  return acquire(store, lease.runId);
}

async function acquire(store, runId) {
  const request = { runId, workerId: 'bench', ttlSeconds: 3600, acquisitionId: randomUUID() };
  return (await store.acquire(request)).lease;
}

/** A session's reading and commit; without a fence it validates all the same. */
export function sessionWrites(store, aim) {
  const session = (isFenced) => async (lease) => {
    const { workerId, runId } = lease;
    const open = await store.session({ workerId, runs: [runId], fence: isFenced ? lease : 'none' });
    const job = open.run(runId);
    job.write('n', ((await job.read('n')) ?? 0) + 1);
    await open.commit();
  };
  return { what: "a session's reading and commit", fenced: session(true), plain: session(false), aim };
}
