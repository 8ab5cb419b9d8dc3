/**
 * A worker: gets jobs from the orchestrator, does each under a lease, and writes what it did in fenced sessions. It may be
 * stopped at any line and go on much later: then another worker has the job, and the store refuses the write.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { isLeaseError, LeaseLostError, LeaseManager, openStore } from 'lessor';

const [workerId, url, ttlSeconds, workSeconds] = process.argv.slice(2);
const store = await openStore(url);
const leases = new LeaseManager(store, { workerId, ttlSeconds: Number(ttlSeconds) });

process.on('message', ({ jobId, stalls }) => void doJob(jobId, stalls));
process.once('disconnect', async () => {
  await leases.close().catch(() => {}); // a lease that could not be released runs out by itself
  await store.close();
});
process.on('SIGINT', () => {}); // Ctrl-C goes to the whole group; the orchestrator says what is to end
tell('worker.idle');

/** `stalls`: stops right before it writes its result, until somebody wakes it. By then another worker has done the job. */
async function doJob(jobId, stalls) {
  try {
    // A worker that died may have left its lease on the job: wait for the end of that one.
    await leases.hold(jobId, { waitSeconds: 2 * ttlSeconds }, async (lease) => {
      if (await write(lease, 'started')) {
        tell('job.started', { jobId, fencingToken: lease.fencingToken });
        // The work. It takes no notice of `lease.signal`, as much real work cannot: the fence alone keeps the result right.
        await sleep(workSeconds * 1000);
        if (stalls) process.kill(process.pid, 'SIGSTOP');
        await write(lease, 'done');
      }
      tell('job.done', { jobId });
    });
  } catch (error) {
    if (!isLeaseError(error)) throw error;
    tell('job.left', { jobId, why: error.message });
  }
  tell('worker.idle');
}

/** Adds to the job's document, in one fenced step. False: the job was done already, and nothing was written. */
async function write(lease, status) {
  try {
    const session = await store.session({ workerId, runs: [lease.runId], fence: lease });
    const job = session.run(lease.runId);
    if ((await job.read('status')) === 'done') return false;
    const history = (await job.read('history')) ?? [];
    job.write('status', status);
    job.write('history', history.concat({ status, workerId, fencingToken: lease.fencingToken }));
    await session.commit();
    return true;
  } catch (error) {
    if (error instanceof LeaseLostError) tell('write.refused', { jobId: lease.runId, status, why: error.message });
    throw error;
  }
}

function tell(type, facts = {}) {
  // When the orchestrator is gone nobody needs to know.
  if (process.connected) process.send({ type, workerId, ...facts }, () => {});
}
