import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { LeaseRef } from '../../lease.ts';
import type { RuleFamily } from '../rule.ts';
import { granted, refused, requestFor, stillLive } from '../rule.ts';

export const releaseRules: RuleFamily = {
  title: 'release',
  rules: {
    'B6 a release succeeds exactly when run, worker, token and acquisition are those of the current lease': async (
      context,
    ) => {
      const { store } = context;
      const lease = await granted(context);
      const foreign = await granted({ ...context, runId: context.anotherRun() }, { workerId: 'worker-b' });
      const wrong: Partial<LeaseRef>[] = [
        { runId: context.anotherRun() },
        { runId: foreign.runId },
        { workerId: 'worker-b' },
        { fencingToken: lease.fencingToken + 1 },
        { acquisitionId: randomUUID() },
        { acquisitionId: foreign.acquisitionId },
      ];
      for (const change of wrong) assert.equal(await store.release({ ...lease, ...change }), false);
      await stillLive(context, lease);
      await stillLive(context, foreign);
      assert.equal(await store.release(lease), true);
      await granted(context, { workerId: 'worker-b' });
    },

    'B6 a release works past expiry, while nobody took over': async (context) => {
      const lease = await granted(context);
      await context.advance(context.ttlSeconds);
      assert.equal(await context.store.release(lease), true);
      assert.equal((await context.store.read(context.runId))?.state, 'free');
    },

    'B6 a released run stays in the records: free, with its last worker, token and fence': async (context) => {
      const { fencingToken } = await granted(context);
      const lease = await granted(context);
      await context.store.release(lease);
      const record = await context.store.read(context.runId);
      const { state, workerId, expiresAt, remainingSeconds, fence, revoked } = record!;
      assert.deepEqual(
        { state, workerId, fencingToken: record!.fencingToken, expiresAt, remainingSeconds, fence, revoked },
        {
          ...{ state: 'free', workerId: 'worker-a', fencingToken, expiresAt: null, remainingSeconds: 0 },
          ...{ fence: fencingToken, revoked: null },
        },
      );
      assert.equal(await context.store.currentFence(context.runId), fencingToken);
    },

    "RL1 a late release does not free the successor's lease": async (context) => {
      for (const workerId of ['worker-a', 'worker-b']) {
        const run = { ...context, runId: context.anotherRun() };
        const late = await granted(run, { workerId: 'worker-a' });
        await context.advance(context.ttlSeconds);
        const next = await granted(run, { workerId });
        assert.equal(await context.store.release(late), false);
        await stillLive(run, next);
        assert.equal(await context.store.release(next), true);
      }
    },

    'RL2 a release that was delayed on its way does not free a later acquisition of the same worker': async (
      context,
    ) => {
      const delayed = await granted(context);
      const lease = await granted(context, { reacquire: 'extend' });
      assert.equal(lease.fencingToken, delayed.fencingToken);
      assert.equal(await context.store.release(delayed), false);
      await refused(context, { workerId: 'worker-b' });
      await stillLive(context, lease);
    },

    'RL3 releasing twice is harmless, in turn and at once': async (context) => {
      const { store } = context;
      const once = await granted(context);
      assert.deepEqual([await store.release(once), await store.release(once)], [true, false]);
      const twice = await granted(context);
      const answers = await Promise.all([store.release(twice), store.release(twice)]);
      assert.equal(answers.filter(Boolean).length, 1);
      assert.equal((await granted(context, { workerId: 'worker-b' })).workerId, 'worker-b');
    },

    'B11 AQ1 an acquire without an answer can be taken back by its acquisition id alone': async (context) => {
      const { store, runId } = context;
      const { workerId, acquisitionId } = await granted(context);
      assert.equal(await store.release({ runId, workerId, acquisitionId }), true);
      await granted(context, { workerId: 'worker-b' });
    },

    'B11 taking an acquire back frees no other acquisition, and none that never came': async (context) => {
      const { store, runId } = context;
      const { workerId, acquisitionId } = requestFor(context);
      assert.equal(await store.release({ runId, workerId, acquisitionId }), false);
      const older = await granted(context);
      const lease = await granted(context);
      for (const wrong of [acquisitionId, older.acquisitionId]) {
        assert.equal(await store.release({ runId, workerId, acquisitionId: wrong }), false);
      }
      assert.equal(await store.release({ runId, workerId: 'worker-b', acquisitionId: lease.acquisitionId }), false);
      await stillLive(context, lease);
    },
  },
};
