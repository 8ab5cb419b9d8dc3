import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { isLeaseError } from '../../errors.ts';
import type { GrantedResult } from '../../stores/store.ts';
import type { RuleContext, RuleFamily } from '../rule.ts';
import { granted, refused, renewal, requestFor, stillLive } from '../rule.ts';

export const acquireRules: RuleFamily = {
  title: 'acquire',
  rules: {
    'a granted lease carries what was asked for, a token and an id': async (context) => {
      const request = requestFor(context);
      const { runId, workerId, acquisitionId, ttlSeconds } = request;
      const result = (await context.store.acquire(request)) as GrantedResult;
      const { fencingToken, expiresAt, ...asked } = result.lease;
      assert.deepEqual(asked, {
        ...{ runId, workerId, acquisitionId, ttlSeconds },
        leaseId: `${runId}:${workerId}:${fencingToken}`,
      });
      assert.ok(Number.isSafeInteger(fencingToken) && fencingToken >= 1, `token ${fencingToken}`);
      assert.ok(Number.isFinite(expiresAt));
      assert.equal(result.extended, false);
      assert.deepEqual(JSON.parse(JSON.stringify(result.lease)), result.lease);
    },

    'B3 AQ13 a held run answers at once who has it, its token and how long to wait, and nothing changes': async (
      context,
    ) => {
      const lease = await granted(context);
      const before = await context.store.read(context.runId);
      const held = await refused(context, { workerId: 'worker-b', ttlSeconds: context.ttlSeconds * 50 });
      const { workerId, fencingToken, retryAfterSeconds } = held;
      assert.deepEqual({ workerId, fencingToken }, { workerId: 'worker-a', fencingToken: lease.fencingToken });
      assert.ok(retryAfterSeconds > 0 && retryAfterSeconds <= context.ttlSeconds * 1.02, `${retryAfterSeconds}`);
      const after = await context.store.read(context.runId);
      assert.deepEqual({ ...after, remainingSeconds: 0 }, { ...before, remainingSeconds: 0 });
      await stillLive(context, lease);
    },

    'B4 AQ11 a new acquire by the same worker keeps the token and retires the older handle': async (context) => {
      const older = await granted(context);
      const result = await context.store.acquire(requestFor(context, { reacquire: 'extend' }));
      assert.equal(result.status, 'granted');
      const { lease: newer, extended } = result;
      assert.equal(extended, true);
      assert.equal(newer.fencingToken, older.fencingToken);
      assert.notEqual(newer.acquisitionId, older.acquisitionId);
      await renewal(context, older, 'lost', 'superseded');
      assert.equal(await context.store.release(older), false);
      await stillLive(context, newer);
    },

    "B4 `extend` is the default, and another worker's `extend` is refused": async (context) => {
      const lease = await granted(context);
      assert.equal((await granted(context)).fencingToken, lease.fencingToken);
      await refused(context, { workerId: 'worker-b', reacquire: 'extend' });
    },

    'B4 with `refuse` its own worker is told that the run is held, and its lease stays': async (context) => {
      const lease = await granted(context);
      const held = await refused(context, { reacquire: 'refuse' });
      assert.equal(held.workerId, lease.workerId);
      assert.equal(held.fencingToken, lease.fencingToken);
      await stillLive(context, lease);
    },

    'B4 B12 no acquire shortens a lease': async (context) => {
      const long = requestFor(context, { ttlSeconds: context.ttlSeconds * 10 });
      const lease = await granted(context, long);
      for (const changes of [{ acquisitionId: randomUUID() }, { acquisitionId: long.acquisitionId }]) {
        const again = await granted(context, { ...changes, ttlSeconds: context.ttlSeconds });
        assert.ok(again.expiresAt >= lease.expiresAt, `${again.expiresAt} is before ${lease.expiresAt}`);
      }
      await context.advance(context.ttlSeconds);
      await refused(context, { workerId: 'worker-b' });
    },

    'AQ1 B12 an acquire repeated with its acquisition id returns that same lease, extended from now': async (
      context,
    ) => {
      const request = requestFor(context, { reacquire: 'refuse' });
      const lease = await granted(context, request);
      await context.advance(context.ttlSeconds / 2);
      const again = await granted(context, request);
      assert.deepEqual({ ...again, expiresAt: 0 }, { ...lease, expiresAt: 0 });
      assert.ok(again.expiresAt > lease.expiresAt, 'the repeat did not extend');
      await context.advance(context.ttlSeconds / 2);
      await stillLive(context, lease);
    },

    'AQ11 B12 once the lease has ended, the repeat of its acquire is an acquire like any other': async (context) => {
      const request = requestFor(context);
      const expired = await granted(context, request);
      await context.advance(context.ttlSeconds);
      const afterExpiry = await granted(context, request);
      assert.ok(afterExpiry.fencingToken > expired.fencingToken);
      await renewal(context, expired, 'lost', 'superseded');
      assert.equal(await context.store.release(afterExpiry), true);
      const afterRelease = await granted(context, request);
      assert.ok(afterRelease.fencingToken > afterExpiry.fencingToken);
      await context.advance(context.ttlSeconds);
      const other = await granted(context, { workerId: 'worker-b' });
      assert.equal((await refused(context, request)).fencingToken, other.fencingToken);
    },

    'B12 an acquisition id gives another worker nothing': async (context) => {
      const lease = await granted(context);
      await refused(context, { workerId: 'worker-b', acquisitionId: lease.acquisitionId });
      await stillLive(context, lease);
    },

    'AQ4 a contender judges a lease by its stored expiry, at the first ask, whatever its own ttl': async (context) => {
      const { ttlSeconds } = context;
      await granted(context, { ttlSeconds: ttlSeconds * 3 });
      await context.advance(ttlSeconds * 2);
      await refused(context, { workerId: 'worker-b', ttlSeconds });
      await context.advance(ttlSeconds);
      await granted(context, { workerId: 'worker-b', ttlSeconds: ttlSeconds * 30 });
    },

    'B11 an acquire whose signal aborts before the answer is of unknown outcome or was never sent, and its repeat is right':
      async (context) => {
        const { store, runId } = context;
        const request = requestFor(context, { ttlSeconds: context.ttlSeconds * 100 });
        const abort = new AbortController();
        const call = store.acquire(request, { signal: abort.signal });
        abort.abort();
        const error = await call.then(
          () => null,
          (reason: unknown) => reason,
        );
        // A store that says anything but "unknown" says that nothing was applied.
        const unknown = isLeaseError(error) && error.code === 'OUTCOME_UNKNOWN';
        if (error !== null && !unknown) assert.equal(await store.currentFence(runId), 0);
        const lease = await granted(context, request);
        await stillLive(context, lease);
        await refused(context, { workerId: 'worker-b' });
      },

    'a call whose signal has aborted already is never sent': async (context) => {
      const signal = AbortSignal.abort();
      const lease = await granted({ ...context, runId: context.anotherRun() });
      await assert.rejects(async () => context.store.acquire(requestFor(context), { signal }));
      await assert.rejects(async () => context.store.release(lease, { signal }));
      await assert.rejects(async () => context.store.renew([lease], context.ttlSeconds * 100, { signal }));
      assert.equal(await context.store.currentFence(context.runId), 0);
      assert.ok((await remaining(context, lease.runId)) <= context.ttlSeconds * 1.02);
    },
  },
};

async function remaining({ store }: RuleContext, runId: string): Promise<number> {
  const record = await store.read(runId);
  assert.equal(record?.state, 'held');
  return record.remainingSeconds;
}
