/** A worker as a user's would be, on the compiled package: it does what its parent tells it, and waits where it is told to. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { openPostgres, openRedis, openSqlite } from './worker-stores.mjs';

const [url] = process.argv.slice(2);
const OPENERS = { 'postgres:': openPostgres, 'redis:': openRedis, 'sqlite:': openSqlite };
const { store, transact, readStatus, writeTable, writeKey, callFunction, queueFunction } =
  await OPENERS[new URL(url).protocol](url);

/** Tells that everything is checked, and goes on when told to: between the two the parent stops this process. */
async function pause() {
  const told = once(process, 'go');
  process.send({ event: 'checked' });
  await told;
}

const commands = {
  async acquire(runId, workerId, ttlSeconds) {
    const result = await store.acquire({ runId, workerId, ttlSeconds, acquisitionId: randomUUID() });
    return result.lease ?? null;
  },

  /** A session that was opened, and has read, before the pause. */
  async session(lease, status, pauses) {
    const session = await store.session({ workerId: lease.workerId, runs: [lease.runId], fence: lease });
    const job = session.run(lease.runId);
    const seen = await job.read('status');
    job.write('status', status);
    if (pauses) await pause();
    await session.commit();
    return seen;
  },

  /** A transaction of its own that begins after the pause. */
  async transaction(lease, status, pauses) {
    const { state } = await store.read(lease.runId);
    if (pauses) await pause();
    await transact({ runId: lease.runId, status, fence: (tx) => store.fence(tx, lease) });
    return state;
  },

  /** A transaction that was begun, and has read, before the pause. */
  async begun(lease, status, pauses) {
    const fence = async (tx) => {
      await readStatus(tx, lease.runId);
      if (pauses) await pause();
      await store.fence(tx, lease);
    };
    await transact({ runId: lease.runId, status, fence });
  },

  /** A transaction that was fenced before the pause, and writes after it. */
  async fenced(lease, status, pauses) {
    const fence = async (tx) => {
      await store.fence(tx, lease);
      const seen = await readStatus(tx, lease.runId);
      if (pauses) await pause();
      return seen;
    };
    return transact({ runId: lease.runId, status, fence });
  },

  /** A plain update of a fenced table. */
  async table(lease, status, pauses) {
    const { state } = await store.read(lease.runId);
    if (pauses) await pause();
    await writeTable(lease, status);
    return state;
  },

  /** Commands of the user's own, by the store. */
  async exec(lease, status, pauses) {
    await store.read(lease.runId);
    if (pauses) await pause();
    return writeKey(lease, status);
  },

  /** The function, called by a client that knows nothing of the library. */
  async function(lease, status, pauses) {
    await store.read(lease.runId);
    if (pauses) await pause();
    return callFunction(lease, status);
  },

  /** The function again, in a MULTI that was open before the pause and holds the call already. */
  async queued(lease, status, pauses) {
    const exec = await queueFunction(lease, status);
    if (pauses) await pause();
    return exec();
  },
};

process.on('message', async ({ id, command, args }) => {
  if (command === 'go') return process.emit('go');
  try {
    process.send({ id, result: (await commands[command](...args)) ?? null });
  } catch (error) {
    const { code, reason, retryable, message } = error;
    process.send({ id, error: { code, reason, retryable, message } });
  }
});
process.on('disconnect', () => process.exit());
process.send({ event: 'ready' });
