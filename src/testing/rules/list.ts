import assert from 'node:assert/strict';
import type { LeaseRecord, ListQuery } from '../../stores/store.ts';
import type { RuleContext, RuleFamily } from '../rule.ts';
import { granted } from '../rule.ts';

/** More than a page of most stores. */
const MANY = 300;

export const listRules: RuleFamily = {
  title: 'list',
  rules: {
    'a list has every record of its prefix once, as `read` gives it, in the order of the run ids': async (context) => {
      const prefix = context.runId;
      const runIds = Array.from(
        { length: MANY },
        (_, index) => `${prefix}/${String((index * 7919) % MANY).padStart(4, '0')}`,
      );
      await leaseAll(context, runIds);
      const records = await listed(context, { prefix });
      assert.deepEqual(
        records.map(({ runId }) => runId),
        runIds.toSorted(),
      );
      const one = records[MANY / 2]!;
      const read = await context.store.read(one.runId);
      assert.deepEqual({ ...one, remainingSeconds: 0 }, { ...read, remainingSeconds: 0 });
    },

    'a list is narrowed by state and by worker': async (context) => {
      const { store, ttlSeconds, advance } = context;
      const prefix = context.runId;
      const lease = (name: string, workerId: string, seconds: number) =>
        granted({ ...context, runId: `${prefix}/${name}` }, { workerId, ttlSeconds: seconds });
      await lease('expired', 'worker-a', ttlSeconds);
      await lease('held', 'worker-b', ttlSeconds * 100);
      await store.release(await lease('free', 'worker-a', ttlSeconds * 100));
      await advance(ttlSeconds);
      const names = async (query: ListQuery) =>
        (await listed(context, { prefix, ...query })).map(({ runId }) => runId.slice(prefix.length + 1));
      for (const state of ['expired', 'free', 'held'] as const) assert.deepEqual(await names({ state }), [state]);
      assert.deepEqual(await names({ workerId: 'worker-a' }), ['expired', 'free']);
      assert.deepEqual(await names({ workerId: 'worker-a', state: 'held' }), []);
      assert.deepEqual(await names({ workerId: 'worker-' }), []);
    },

    'NM3 a prefix is compared character by character, and is no pattern': async (context) => {
      const prefix = context.runId;
      const runIds = ['%', '*', '?', '[a]', '\\', '_', 'a', 'A', 'b'].map((name) => `${prefix}${name}`);
      await leaseAll(context, runIds);
      for (const runId of runIds) {
        const found = await listed(context, { prefix: runId });
        assert.deepEqual(
          found.map((record) => record.runId),
          [runId],
        );
      }
      assert.deepEqual(await listed(context, { prefix: prefix.toUpperCase() }), []);
    },

    'a run that is held throughout is listed once, while others come and go': async (context) => {
      const prefix = context.runId;
      const steady = Array.from({ length: 20 }, (_, index) => `${prefix}/${index * 10 + 5}`);
      await leaseAll(context, steady);
      const listing = new AbortController();
      const churn = async (seed: number) => {
        for (let round = 0; !listing.signal.aborted && round < 2_000; round += 1) {
          const runId = `${prefix}/${(seed + round * 37) % 200}`;
          const ttlSeconds = context.ttlSeconds * 1000;
          const request = { runId, workerId: 'churn', acquisitionId: `${seed}-${round}`, ttlSeconds };
          const result = await context.store.acquire(request);
          if (result.status === 'granted') await context.store.release(result.lease);
          await new Promise((resolve) => setImmediate(resolve));
        }
      };
      const churning = Promise.all([churn(1), churn(2)]);
      try {
        for (let round = 0; round < 10; round += 1) {
          const runIds = (await listed(context, { prefix })).map(({ runId }) => runId);
          assert.equal(new Set(runIds).size, runIds.length, 'a run was listed twice');
          assert.deepEqual(
            runIds.filter((runId) => steady.includes(runId)),
            steady.toSorted(),
          );
        }
      } finally {
        listing.abort();
        await churning;
      }
    },

    'a list can be left early': async (context) => {
      const prefix = context.runId;
      await leaseAll(context, [`${prefix}/1`, `${prefix}/2`, `${prefix}/3`]);
      for await (const record of context.store.list({ prefix })) {
        assert.equal(record.runId, `${prefix}/1`);
        break;
      }
      assert.equal((await listed(context, { prefix })).length, 3);
    },
  },
};

async function leaseAll(context: RuleContext, runIds: readonly string[]): Promise<void> {
  const ttlSeconds = context.ttlSeconds * 1000;
  await Promise.all(runIds.map((runId) => granted({ ...context, runId }, { ttlSeconds })));
}

async function listed({ store }: RuleContext, query: ListQuery): Promise<readonly LeaseRecord[]> {
  const records: LeaseRecord[] = [];
  for await (const record of store.list(query)) records.push(record);
  return records;
}
