import assert from 'node:assert/strict';
import type { RuleContext, RuleFamily } from '../rule.ts';
import { granted, refused, renewal, stillLive } from '../rule.ts';

export const reopenRules: RuleFamily = {
  title: 'another store over the same data',
  needs: 'reopen',
  rules: {
    'B9 a grant outlives the store that gave it: held for others, live for its worker': (context) =>
      withAnother(context, async (another) => {
        const lease = await granted(context);
        await context.store.close();
        await refused(another, { workerId: 'worker-b' });
        await stillLive(another, lease);
        assert.equal(await another.store.release(lease), true);
      }),

    'B2 tokens rise from store to store of one data, with every store that is opened': async (context) => {
      let newest = 0;
      for (let round = 0; round < 5; round += 1) {
        for (const open of [() => withAnother(context, once), () => once(context)]) await open();
      }
      async function once(use: RuleContext): Promise<void> {
        assert.equal(await use.store.currentFence(use.runId), newest);
        const lease = await granted(use);
        assert.ok(lease.fencingToken > newest, `${lease.fencingToken} is not above ${newest}`);
        newest = lease.fencingToken;
        assert.equal(await use.store.release(lease), true);
      }
    },

    'B15 a store object keeps no lease of its own: any store over the data renews, releases and judges expiry': (
      context,
    ) =>
      withAnother(context, async (another) => {
        const lease = await granted(context);
        await renewal(another, lease, 'renewed');
        await context.advance(context.ttlSeconds);
        const next = await granted(another, { workerId: 'worker-b' });
        await renewal(context, lease, 'lost', 'superseded');
        await stillLive(context, next);
      }),
  },
};

async function withAnother(context: RuleContext, use: (another: RuleContext) => Promise<void>): Promise<void> {
  const store = await context.harness.reopen!(context.store);
  try {
    await use({ ...context, store });
  } finally {
    await store.close();
  }
}
