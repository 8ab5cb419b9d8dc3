import assert from 'node:assert/strict';
import type { RuleFamily } from '../rule.ts';
import { granted, renewal } from '../rule.ts';

const WHY = { by: 'operator', reason: 'stuck since noon' };

export const revokeRules: RuleFamily = {
  title: 'revoke',
  rules: {
    'B19 TK9 a revoked lease is refused at once, with its reason, and the next token is higher': async (context) => {
      const { store, runId } = context;
      const lease = await granted(context);
      const revoked = await store.revoke(runId, WHY);
      const { workerId, fencingToken } = lease;
      assert.deepEqual(
        { workerId: revoked?.workerId, fencingToken: revoked?.fencingToken },
        { workerId, fencingToken },
      );
      await renewal(context, lease, 'lost', 'revoked');
      assert.equal(await store.release(lease), false);
      const next = await granted(context, { workerId: 'worker-b' });
      assert.ok(next.fencingToken > lease.fencingToken);
    },

    'TK9 who revoked a lease, when and why stands in the record until the next lease': async (context) => {
      const { store, runId } = context;
      await granted(context);
      await store.revoke(runId, WHY);
      const record = await store.read(runId);
      const { by, reason, at } = record?.revoked ?? {};
      assert.deepEqual({ state: record?.state, by, reason }, { state: 'free', ...WHY });
      assert.ok(at !== undefined && at >= record!.acquiredAt, `revoked at ${at}, acquired at ${record!.acquiredAt}`);
      await granted(context);
      assert.equal((await store.read(runId))?.revoked, null);
    },

    'revoking a run that is free, or was never leased, answers null': async (context) => {
      const { store, runId } = context;
      assert.equal(await store.revoke(runId, WHY), null);
      const lease = await granted(context);
      await store.release(lease);
      assert.equal(await store.revoke(runId, WHY), null);
      assert.equal((await store.read(runId))?.revoked, null);
    },

    'a lease past its expiry can be revoked too': async (context) => {
      const lease = await granted(context);
      await context.advance(context.ttlSeconds);
      assert.equal((await context.store.revoke(context.runId, WHY))?.fencingToken, lease.fencingToken);
      assert.equal((await context.store.read(context.runId))?.state, 'free');
    },
  },
};
