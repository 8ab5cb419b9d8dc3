import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RuleFamily } from '../rule.ts';
import { granted } from '../rule.ts';

/** A `changes` that does not end with its signal fails after this long. */
const PATIENCE_SECONDS = 5;

export const readRules: RuleFamily = {
  title: 'read',
  rules: {
    'a run that was never leased has no record, and reading makes none': async ({ store, runId }) => {
      assert.equal(await store.read(runId), null);
      assert.equal(await store.currentFence(runId), 0);
      assert.equal(await store.read(runId), null);
    },

    "a record tells worker, token, times and state, by the store's clock": async (context) => {
      const { store, ttlSeconds, runId, advance } = context;
      const lease = await granted(context);
      const { workerId, fencingToken, expiresAt } = lease;
      const record = await store.read(runId);
      const { acquiredAt, remainingSeconds, ...rest } = record!;
      const expected = { runId, state: 'held', workerId, fencingToken, expiresAt, ttlSeconds };
      assert.deepEqual(rest, { ...expected, fence: fencingToken, revoked: null });
      assert.ok(acquiredAt < expiresAt);
      assert.ok(remainingSeconds > 0 && remainingSeconds <= ttlSeconds * 1.02, `${remainingSeconds}`);
      await advance(ttlSeconds);
      const expired = await store.read(runId);
      assert.deepEqual(expired, { ...record, state: 'expired', remainingSeconds: 0 });
    },

    'an extension keeps the moment at which the lease was acquired': async (context) => {
      const { store, ttlSeconds, runId, advance } = context;
      const lease = await granted(context);
      const before = await store.read(runId);
      await advance(ttlSeconds / 2);
      await store.renew([lease], ttlSeconds);
      await granted(context, { reacquire: 'extend' });
      assert.equal((await store.read(runId))?.acquiredAt, before?.acquiredAt);
    },

    'B13 what was acknowledged is what the next read sees': async (context) => {
      const { store, runId } = context;
      for (let round = 0; round < 20; round += 1) {
        const lease = await granted(context);
        assert.equal((await store.read(runId))?.fencingToken, lease.fencingToken);
        await store.release(lease);
        assert.equal((await store.read(runId))?.state, 'free');
      }
    },

    'B23 nothing that is read, listed or revoked carries an acquisition id': async (context) => {
      const { store, runId } = context;
      const { acquisitionId } = await granted(context);
      const listed = [];
      for await (const record of store.list({ prefix: runId })) listed.push(record);
      const revoked = await store.revoke(runId, { by: 'operator', reason: 'test' });
      const shown = JSON.stringify([await store.read(runId), listed, revoked]);
      assert.equal(listed.length, 1);
      assert.equal(shown.includes(acquisitionId), false, shown);
    },

    'changes end with their signal, before any and while waiting': async (context) => {
      const { store, runId } = context;
      if (!store.changes) return;
      for (const afterSeconds of [0, 0.05]) {
        const abort = new AbortController();
        const ended: Promise<string> = endOf(store.changes([runId], { signal: abort.signal })).then(() => 'ended');
        await sleep(afterSeconds * 1000);
        abort.abort();
        const late = new AbortController();
        const patience = sleep(PATIENCE_SECONDS * 1000, 'still waiting', { signal: late.signal }).catch(
          () => 'cancelled',
        );
        assert.equal(await Promise.race([ended, patience]), 'ended');
        late.abort();
      }
    },
  },
};

/** Ends when the changes do, also when they end with the signal's reason. */
async function endOf(changes: AsyncIterable<unknown>): Promise<void> {
  try {
    for await (const _ of changes);
  } catch (error) {
    assert.equal((error as Error).name, 'AbortError');
  }
}
