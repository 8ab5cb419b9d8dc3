import assert from 'node:assert/strict';
import { isLeaseError } from '../../errors.ts';
import type { LeaseStore } from '../../stores/store.ts';
import type { RuleContext, RuleFamily } from '../rule.ts';
import { granted, requestFor } from '../rule.ts';

export const closeRules: RuleFamily = {
  title: 'close',
  rules: {
    'B15 closing twice, at once and again, is fine, and every later call rejects': async (context) => {
      const { store } = context;
      await granted(context);
      await Promise.all([store.close(), store.close()]);
      await store.close();
      await store[Symbol.asyncDispose]();
      const calls = { ...everyCall(context, store), 'renew of none': () => store.renew([], context.ttlSeconds) };
      for (const [name, call] of Object.entries(calls)) await rejects(name, call);
    },

    'B14 a closed store says that it could not be asked, as a lease error': async (context) => {
      await context.store.close();
      await assert.rejects(
        async () => context.store.read(context.runId),
        (error) => isLeaseError(error) && error.code === 'STORE_UNAVAILABLE',
      );
    },

    'what its store can lose is known once it is open': async ({ store }) => {
      const { survives, warnings } = store.durability;
      assert.ok(['nothing', 'process-crash', 'power-loss', 'failover', 'unknown'].includes(survives), survives);
      assert.ok(warnings.every((warning) => typeof warning === 'string' && warning !== ''));
      assert.ok(survives !== 'nothing' || warnings.length > 0, 'a store that keeps nothing warns of it');
    },
  },
};

export const unreachableRules: RuleFamily = {
  title: 'a store that cannot be asked',
  needs: 'unreachable',
  rules: {
    'B14 AQ6 a store that cannot be asked rejects every call, and never answers as if the run were free': async (
      context,
    ) => {
      const store = await context.harness.unreachable!();
      try {
        for (const [name, call] of Object.entries(everyCall(context, store))) {
          await rejects(name, call, 'STORE_UNAVAILABLE', 'OUTCOME_UNKNOWN');
        }
      } finally {
        await store.close();
      }
    },
  },
};

function everyCall(context: RuleContext, store: LeaseStore): Record<string, () => unknown> {
  const { runId } = context;
  const request = requestFor(context);
  const lease = { ...request, fencingToken: 1 };
  return {
    acquire: () => store.acquire(request),
    renew: () => store.renew([lease], context.ttlSeconds),
    release: () => store.release(lease),
    revoke: () => store.revoke(runId, { by: 'kit', reason: 'test' }),
    read: () => store.read(runId),
    list: () => store.list()[Symbol.asyncIterator]().next(),
    currentFence: () => store.currentFence(runId),
  };
}

async function rejects(name: string, call: () => unknown, ...codes: readonly string[]): Promise<void> {
  await assert.rejects(
    async () => call(),
    (error) => codes.length === 0 || (isLeaseError(error) && codes.includes(error.code)),
    `\`${name}\` did not reject as it should`,
  );
}
