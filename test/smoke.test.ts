/** What plain Node loads: the build of xstate that users run. The other tests load its development build. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('..', import.meta.url));

const SCRIPT = `
import assert from 'node:assert/strict';
import { createActor } from 'xstate';
import { LeaseRegistry, MemoryStore, registryLogic } from './dist/src/index.js';
import { leaseMachine } from './dist/machines/index.js';

assert.doesNotMatch(import.meta.resolve('xstate'), /development/);

const registry = new LeaseRegistry({ ttlSeconds: 10 });
const first = registry.acquire('run-1', 'worker-a', 0);
assert.deepEqual(first, {
  runId: 'run-1', workerId: 'worker-a', leaseId: 'run-1:worker-a:1', fencingToken: 1, expiresAt: 10,
});
assert.equal(registry.acquire('run-1', 'worker-b', 5), null);
assert.equal(registry.acquire('run-1', 'worker-b', 10)?.fencingToken, 2);
assert.equal(registry.validate('run-1', first.leaseId, 1, 11), false);
assert.equal(registry.release(first.leaseId, 1), false);

const chart = createActor(leaseMachine, { input: { runId: 'run-1' } }).start();
chart.send({ type: 'acquire', workerId: 'worker-a', fencingToken: 1, now: 0, ttlSeconds: 10 });
assert.equal(chart.getSnapshot().value, 'held');

const actor = createActor(registryLogic, { input: { ttlSeconds: 10 } }).start();
actor.send({ type: 'lease.acquire', runId: 'run-1', workerId: 'worker-a', now: 0 });
assert.equal(actor.getSnapshot().answer.type, 'lease.granted');

const store = new MemoryStore();
const ask = { runId: 'run-1', workerId: 'worker-a', acquisitionId: 'acquisition-1', ttlSeconds: 30 };
assert.equal((await store.acquire(ask)).status, 'granted');
assert.equal((await store.acquire({ ...ask, workerId: 'worker-b', acquisitionId: 'acquisition-2' })).status, 'held');
await store.close();
console.log('done');
`;

it('under plain Node the registry, the charts and the memory store do what they do under the tests', async () => {
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', SCRIPT], { cwd: ROOT });
  expect(stdout).toBe('done\n');
});
