import assert from 'node:assert/strict';
import type { RuleFamily } from '../rule.ts';
import { granted, refused, renewal, requestFor, stillLive } from '../rule.ts';

const WHY = { by: 'operator', reason: 'stuck' };

export const tokenRules: RuleFamily = {
  title: 'tokens',
  rules: {
    'B2 tokens strictly increase from lease to lease of a run: across release, expiry, take-over and revocation':
      async (context) => {
        const { store, ttlSeconds, advance, runId } = context;
        const first = await granted(context);
        await store.release(first);
        const afterRelease = await granted(context);
        await advance(ttlSeconds);
        const afterExpiry = await granted(context);
        await advance(ttlSeconds);
        const afterTakeOver = await granted(context, { workerId: 'worker-b' });
        await store.revoke(runId, WHY);
        const afterRevocation = await granted(context);
        await advance(ttlSeconds);
        await store.release(afterRevocation);
        const afterLateRelease = await granted(context);
        const tokens = [first, afterRelease, afterExpiry, afterTakeOver, afterRevocation, afterLateRelease].map(
          ({ fencingToken }) => fencingToken,
        );
        assert.deepEqual(
          tokens,
          [...new Set(tokens)].toSorted((one, other) => one - other),
        );
      },

    'B2 the fence is 0 before the first lease, and then the highest token that was issued': async (context) => {
      const { store, runId } = context;
      assert.equal(await store.currentFence(runId), 0);
      for (let round = 0; round < 5; round += 1) {
        const lease = await granted(context);
        assert.equal(await store.currentFence(runId), lease.fencingToken);
        await store.release(lease);
        assert.equal(await store.currentFence(runId), lease.fencingToken);
      }
    },

    'B2 a refusal and an extension use no token': async (context) => {
      const { store, runId } = context;
      const lease = await granted(context);
      for (let attempt = 0; attempt < 5; attempt += 1) {
        await refused(context, { workerId: 'worker-b' });
        await granted(context);
        await renewal(context, { ...lease, workerId: 'worker-b' }, 'lost');
      }
      assert.equal(await store.currentFence(runId), lease.fencingToken);
    },
  },
};

export const plantedTokenRules: RuleFamily = {
  title: 'tokens at their limits',
  needs: 'plantToken',
  rules: {
    'NM4 the token after 9 is above 9, compared as numbers': async (context) => {
      const { store, harness, runId } = context;
      await store.release(await granted(context));
      await harness.plantToken!(store, runId, 999_999_999_999_999);
      const tenth = await granted(context);
      assert.ok(tenth.fencingToken > 999_999_999_999_999, `${tenth.fencingToken}`);
      await stillLive(context, tenth);
    },

    'NM4 token 2^53 - 1 is exact, and the grant after it fails instead of wrapping': async (context) => {
      const { store, harness, runId } = context;
      await store.release(await granted(context));
      await harness.plantToken!(store, runId, Number.MAX_SAFE_INTEGER - 1);
      const last = await granted(context);
      assert.equal(last.fencingToken, Number.MAX_SAFE_INTEGER);
      assert.equal(JSON.parse(JSON.stringify(last)).fencingToken, Number.MAX_SAFE_INTEGER);
      await stillLive(context, last);
      assert.equal(await store.release(last), true);
      await assert.rejects(async () => store.acquire(requestFor(context)), RangeError);
      assert.equal(await store.currentFence(runId), Number.MAX_SAFE_INTEGER);
    },
  },
};
