import assert from 'node:assert/strict';
import type { LeaseStore } from '../../stores/store.ts';
import type { RuleFamily } from '../rule.ts';
import { granted, refused, renewal, stillLive } from '../rule.ts';

/** Lengths that rounding to a unit of time would shorten. */
const BETWEEN_UNITS = [1.0004, 1.4999, 2.0001, 0.1 + 0.2];

/** What a store's own arithmetic may cost. */
const ARITHMETIC_SECONDS = 0.000_05;

export const expiryRules: RuleFamily = {
  title: 'expiry',
  rules: {
    'RN8 at expiry a take-over is granted, and a renewal that comes after it is refused': async (context) => {
      const late = await granted(context);
      await context.advance(context.ttlSeconds);
      const next = await granted(context, { workerId: 'worker-b' });
      assert.ok(next.fencingToken > late.fencingToken);
      await renewal(context, late, 'lost', 'superseded');
      await stillLive(context, next);
    },

    'RN8 at expiry a renewal is refused, and a take-over that comes after it is granted': async (context) => {
      const late = await granted(context);
      await context.advance(context.ttlSeconds);
      await renewal(context, late, 'lost', 'expired');
      await granted(context, { workerId: 'worker-b' });
    },

    'B5 nothing revives an expired lease, also when nobody took over': async (context) => {
      const { store, ttlSeconds, advance, runId } = context;
      const late = await granted(context);
      await advance(ttlSeconds);
      for (let attempt = 0; attempt < 3; attempt += 1) await renewal(context, late, 'lost', 'expired');
      const record = await store.read(runId);
      assert.deepEqual([record?.state, record?.remainingSeconds], ['expired', 0]);
    },

    'just below its ttl a lease is live, for its worker and for others': async (context) => {
      const { ttlSeconds, advance, harness } = context;
      const lease = await granted(context);
      await advance(ttlSeconds * (harness.timePasses ? 0.6 : 0.999));
      await refused(context, { workerId: 'worker-b' });
      await stillLive(context, lease);
    },

    'NM2 B8 a ttl between two units is never rounded down': async (context) => {
      for (const ttlSeconds of BETWEEN_UNITS) {
        const run = { ...context, runId: context.anotherRun() };
        const lease = await granted(run, { ttlSeconds });
        const record = await context.store.read(run.runId);
        assert.equal(record?.expiresAt, lease.expiresAt);
        const livesSeconds = lease.expiresAt - record.acquiredAt;
        assert.ok(livesSeconds >= ttlSeconds - ARITHMETIC_SECONDS, `${livesSeconds} for ${ttlSeconds}`);
        assert.ok(livesSeconds <= ttlSeconds + 1.001, `${livesSeconds} for ${ttlSeconds}`);
      }
    },

    'B8 the expiry that others see is never before the one that the worker counts with': async (context) => {
      const { store, ttlSeconds, runId } = context;
      const probe = await granted({ ...context, runId: context.anotherRun() }, { ttlSeconds: 3600 });
      // The worker counts from before it asks, so from here, whatever the store's clock counts in.
      const askedAt = await storeClock(store, probe.runId);
      const lease = await granted(context);
      const record = await store.read(runId);
      const seenAt = await storeClock(store, probe.runId);
      const expiresAt = askedAt + ttlSeconds - ARITHMETIC_SECONDS;
      assert.ok(lease.expiresAt >= expiresAt, `${lease.expiresAt} is before ${expiresAt}`);
      assert.ok(record!.expiresAt! >= expiresAt, `${record!.expiresAt} is before ${expiresAt}`);
      const leastSeconds = expiresAt - seenAt;
      assert.ok(record!.remainingSeconds >= leastSeconds, `${record!.remainingSeconds} is below ${leastSeconds}`);
    },

    'a very short and a very long ttl are kept': async (context) => {
      const { store, advance, ttlSeconds } = context;
      const short = await granted(context, { ttlSeconds: 0.001 });
      const long = await granted({ ...context, runId: context.anotherRun() }, { ttlSeconds: 86_400 * 365 });
      await advance(ttlSeconds);
      await renewal(context, short, 'lost', 'expired');
      const record = await store.read(long.runId);
      assert.equal(record?.state, 'held');
      assert.ok(record.remainingSeconds > 86_400 * 364, `${record.remainingSeconds}`);
    },
  },
};

/** What the store's own clock says, by a run that is held. */
async function storeClock(store: LeaseStore, runId: string): Promise<number> {
  const record = await store.read(runId);
  assert.equal(record?.state, 'held');
  return record.expiresAt! - record.remainingSeconds;
}
