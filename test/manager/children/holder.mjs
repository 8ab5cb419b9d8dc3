// Holds a run of a SQLite file, tells each renewal that it sends, and checks its lease at every turn until it is lost.
import { setTimeout as sleep } from 'node:timers/promises';
import { LeaseManager } from '../../../dist/src/manager/lease-manager.js';
import { openStore } from '../../../dist/src/stores/open-store.js';

const tell = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
const store = await openStore(process.argv[2]);
const renew = store.renew.bind(store);
store.renew = (...call) => {
  tell({ sent: 'renewal', at: Date.now() });
  return renew(...call);
};
const leases = new LeaseManager(store, { ttlSeconds: 2, workerId: 'holder' });
const lease = await leases.acquire('run-1');
lease.signal.addEventListener('abort', () => tell({ aborted: lease.signal.reason.reason, at: Date.now() }));
tell({ held: lease.fencingToken, at: Date.now() });
for (;;) {
  await sleep(10);
  try {
    lease.assertHeld();
  } catch (error) {
    tell({ checked: error.reason, remaining: lease.remainingSeconds(), at: Date.now() });
    break;
  }
}
await leases.close();
await store.close();
