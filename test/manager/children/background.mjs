// Everything goes wrong in the background of this process, and no handler is installed. It must end by itself, with code 0.
import { LeaseManager } from '../../../dist/src/manager/lease-manager.js';
import { MemoryStore } from '../../../dist/src/stores/memory.js';

const store = new MemoryStore();
const renew = store.renew.bind(store);
let renewals = 0;
store.renew = async (...call) => {
  renewals += 1;
  if (renewals === 1) throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  return renew(...call);
};

const leases = new LeaseManager(store, { ttlSeconds: 3 });
leases.on('uncertain', () => {
  void store.revoke('run-1', { by: 'operator', reason: 'stuck' });
  throw new Error('a listener of uncertain');
});
leases.on('lost', () => {
  throw new Error('a listener of lost');
});
const abandoned = await leases.acquire('run-2');
await store.revoke('run-2', { by: 'operator', reason: 'stuck' });
abandoned.signal.addEventListener('abort', () => {
  throw new Error('a listener of abort');
});
try {
  await leases.hold('run-1', {}, (lease) => new Promise((resolve) => lease.signal.addEventListener('abort', resolve)));
} catch (error) {
  if (!abandoned.signal.aborted) await new Promise((resolve) => abandoned.signal.addEventListener('abort', resolve));
  process.stdout.write(`${error.code} ${error.reason} ${abandoned.signal.reason.reason}\n`);
}
