/** Walks a path on the implementation and on the model, and compares after every step. */
import assert from 'node:assert/strict';
import { LeaseRegistry } from 'lessor';
import { happen, initial, TTL_SECONDS } from './model.js';

export function play(path, Implementation) {
  const registry = new LeaseRegistry({ ttlSeconds: TTL_SECONDS });
  const uploader = new Implementation(registry);
  let expected = initial;
  for (const [index, type] of path.entries()) {
    const { now } = expected;
    if (type === 'rival') registry.acquire('file', 'rival', now);
    else if (type === 'look') registry.expire(now);
    else if (type !== 'wait') uploader[type](now);
    expected = happen(expected, { type });
    const { upload, lease } = expected;
    assert.deepEqual(
      { state: uploader.state, token: registry.get('file')?.fencingToken },
      { state: upload.value, token: lease.context.lease?.fencingToken },
      `after ${path.slice(0, index + 1).join(', ')}: expected ${upload.value}, and it is ${uploader.state}`,
    );
  }
}
