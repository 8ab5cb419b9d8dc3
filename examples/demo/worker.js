/**
 * A worker: waits for the run, then writes the report line by line. It does what a careful program can do: it checks that
 * it holds the lease before each line. But a check cannot make a later write safe, since anything may happen in between.
 */
import { LeaseManager, openStore } from 'lessor';
import { setTimeout as sleep } from 'node:timers/promises';
import { Report } from './report.js';

const [workerId, url, lines] = process.argv.slice(2);
const tell = (text) => process.send({ workerId, text });

const store = await openStore(url);
const leases = new LeaseManager(store, { ttlSeconds: 2, workerId });

tell('asks for the run');
const lease = await leases.acquire('monthly-report', { waitSeconds: 60 });
tell(`has the run, token ${lease.fencingToken}`);
lease.signal.addEventListener('abort', () => tell(`learns: ${lease.signal.reason.message}`));

const report = new Report(store, 'monthly-report');
try {
  for (let line = 1; line <= Number(lines); line += 1) {
    lease.assertHeld();
    tell(`holds the lease, prepares line ${line}`);
    await sleep(500); // the work. The demo freezes worker-a here
    const accepted = await report.write(line, lease);
    tell(`writes line ${line} with token ${lease.fencingToken}: ${accepted ? 'accepted' : 'REFUSED by the storage'}`);
  }
} catch (error) {
  tell(`stops: ${error.message}`);
} finally {
  await lease.release();
  await leases.close();
  await store.close();
  tell('is done');
  process.disconnect();
}
