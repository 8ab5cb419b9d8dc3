import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { LeaseRef } from '../../lease.ts';
import type { RuleFamily } from '../rule.ts';
import { granted, renewal, stillLive } from '../rule.ts';

export const renewRules: RuleFamily = {
  title: 'renew',
  rules: {
    'B5 a renewal succeeds exactly when run, worker, token and acquisition are those of the live lease': async (
      context,
    ) => {
      const lease = await granted(context);
      const foreign = await granted({ ...context, runId: context.anotherRun() }, { workerId: 'worker-b' });
      const wrong: Partial<LeaseRef>[] = [
        { runId: context.anotherRun() },
        { runId: foreign.runId },
        { workerId: 'worker-b' },
        { workerId: 'worker-' },
        { fencingToken: lease.fencingToken + 1 },
        { fencingToken: Number.MAX_SAFE_INTEGER },
        { acquisitionId: randomUUID() },
        { acquisitionId: foreign.acquisitionId },
      ];
      for (const change of wrong) await renewal(context, { ...lease, ...change }, 'lost');
      await stillLive(context, lease);
      await stillLive(context, foreign);
    },

    'B5 a renewal extends to the ttl that it was sent with, from now': async (context) => {
      const { store, ttlSeconds, advance } = context;
      const lease = await granted(context);
      await advance(ttlSeconds / 2);
      const [result] = await store.renew([lease], ttlSeconds * 3);
      assert.ok(result?.status === 'renewed');
      const record = await store.read(context.runId);
      assert.equal(record?.expiresAt, result.expiresAt);
      assert.ok(record.remainingSeconds <= ttlSeconds * 3.02, `${record.remainingSeconds}`);
      await advance(ttlSeconds * 2.5);
      await stillLive(context, lease);
    },

    'B5 a renewal never shortens a lease': async (context) => {
      const { store, ttlSeconds } = context;
      const lease = await granted(context, { ttlSeconds: ttlSeconds * 10 });
      const [result] = await store.renew([lease], ttlSeconds / 10);
      assert.ok(result?.status === 'renewed');
      assert.ok(result.expiresAt >= lease.expiresAt, `${result.expiresAt} is before ${lease.expiresAt}`);
      await context.advance(ttlSeconds);
      await stillLive(context, lease);
    },

    'B5 answers come one per reference, in order, and a refused or repeated one changes nothing for the others': async (
      context,
    ) => {
      const { store, ttlSeconds } = context;
      const first = await granted(context);
      const second = await granted({ ...context, runId: context.anotherRun() });
      const gone = await granted({ ...context, runId: context.anotherRun() });
      await store.release(gone);
      const never = { ...first, runId: context.anotherRun() };
      const results = await store.renew([gone, first, never, second, first, { ...second, workerId: 'x' }], ttlSeconds);
      const statuses = results.map(({ status }) => status);
      assert.deepEqual(statuses, ['lost', 'renewed', 'lost', 'renewed', 'renewed', 'lost']);
      await stillLive(context, first);
      await stillLive(context, second);
    },

    'B5 a batch of 200 leases is answered in order': async (context) => {
      const { store, ttlSeconds } = context;
      const runs = Array.from({ length: 200 }, () => ({ ...context, runId: context.anotherRun() }));
      const leases = await Promise.all(runs.map((run) => granted(run, { ttlSeconds: ttlSeconds * 100 })));
      const asked = leases.map((lease, index) => (index % 3 === 0 ? { ...lease, acquisitionId: 'another' } : lease));
      const results = await store.renew(asked, ttlSeconds * 100);
      assert.deepEqual(
        results.map(({ status }) => status),
        asked.map((_, index) => (index % 3 === 0 ? 'lost' : 'renewed')),
      );
    },

    'NM5 no references get no answers, and one lease named twice gets two': async (context) => {
      const lease = await granted(context);
      assert.deepEqual(await context.store.renew([], context.ttlSeconds), []);
      const results = await context.store.renew([lease, lease], context.ttlSeconds);
      assert.deepEqual(
        results.map(({ status }) => status),
        ['renewed', 'renewed'],
      );
    },

    'B5 a loss says why: expired, superseded, released, revoked, unknown': async (context) => {
      const { store, ttlSeconds, advance } = context;
      const expired = await granted(context);
      const superseded = await granted({ ...context, runId: context.anotherRun() });
      const released = await granted({ ...context, runId: context.anotherRun() });
      const revoked = await granted({ ...context, runId: context.anotherRun() });
      await store.release(released);
      await store.revoke(revoked.runId, { by: 'operator', reason: 'stuck' });
      await advance(ttlSeconds);
      await granted({ ...context, runId: superseded.runId }, { workerId: 'worker-b' });
      await renewal(context, expired, 'lost', 'expired');
      await renewal(context, superseded, 'lost', 'superseded');
      await renewal(context, released, 'lost', 'released');
      await renewal(context, revoked, 'lost', 'revoked');
      await renewal(context, { ...expired, runId: context.anotherRun() }, 'lost', 'unknown');
    },

    'RN7 a renewal after another worker came and went is refused, for ever': async (context) => {
      const { store, ttlSeconds, advance } = context;
      const late = await granted(context);
      await advance(ttlSeconds);
      const other = await granted(context, { workerId: 'worker-b' });
      assert.equal(await store.release(other), true);
      await renewal(context, late, 'lost', 'superseded');
      await renewal(context, late, 'lost', 'superseded');
      assert.equal((await store.read(context.runId))?.state, 'free');
    },

    'RN9 the older handle of the same worker can neither renew nor release': async (context) => {
      const { store, ttlSeconds, advance } = context;
      const expired = await granted(context);
      await advance(ttlSeconds);
      const live = await granted(context);
      const newest = await granted(context, { reacquire: 'extend' });
      for (const older of [expired, live]) {
        await renewal(context, older, 'lost', 'superseded');
        assert.equal(await store.release(older), false);
      }
      await stillLive(context, newest);
    },
  },
};
