/** A process that uses leases as a user's would: from the compiled package. It does what its parent tells it. */
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { SqliteStore } from '../../../dist/src/stores/sqlite.js';

const [driver, file] = process.argv.slice(2);
const loaded = createRequire(import.meta.url)(driver);
const Driver = loaded.DatabaseSync ?? loaded;
const store = await SqliteStore.open({ database: new Driver(file), ownsDatabase: true });

const commands = {
  /** Any call of the store. */
  call: (method, ...args) => store[method](...args),

  /** One acquire at a moment of the machine's clock, so that many processes ask at once. */
  async acquireAt(milliseconds, request) {
    while (Date.now() < milliseconds);
    return store.acquire(request);
  },

  /** Keeps a write transaction open on a connection of its own. The process sleeps meanwhile. */
  async lock(seconds) {
    const database = new Driver(file);
    database.exec('BEGIN IMMEDIATE');
    process.send({ event: 'locked' });
    await sleep(seconds * 1000);
    const unlockedAt = Date.now() / 1000;
    database.exec('COMMIT');
    database.close();
    return unlockedAt;
  },

  /** Takes, renews and frees a run for ever, and tells each token once it has it. */
  async churn(runId, ttlSeconds) {
    for (let number = 0; ; number += 1) {
      const request = {
        runId,
        workerId: `worker-${process.pid}`,
        acquisitionId: `${process.pid}-${number}`,
        ttlSeconds,
      };
      const result = await store.acquire(request);
      if (result.status === 'held') {
        await sleep(5);
        continue;
      }
      process.send({ event: 'granted', fencingToken: result.lease.fencingToken });
      await store.renew([result.lease], ttlSeconds);
      await store.release(result.lease);
    }
  },
};

process.on('message', async ({ id, command, args }) => {
  try {
    process.send({ id, result: await commands[command](...args) });
  } catch (error) {
    process.send({ id, error: String(error) });
  }
});
process.on('disconnect', () => process.exit());
process.send({ event: 'ready' });
