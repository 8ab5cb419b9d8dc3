/** A process with the leases' file open, from the compiled package: makes the calls that its parent asks for. */
import { createRequire } from 'node:module';
import { SqliteStore } from '../../dist/src/stores/sqlite.js';

const Driver = createRequire(import.meta.url)('libsql');
const store = await SqliteStore.open({ database: new Driver(process.argv[2]), ownsDatabase: true });

process.on('message', async ({ id, method, args }) => {
  try {
    process.send({ id, result: await store[method](...args) });
  } catch ({ message, code, reason }) {
    process.send({ id, error: { message, code, reason } });
  }
});
process.on('disconnect', () => process.exit());
process.send({ id: 0 });
