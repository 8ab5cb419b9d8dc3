import assert from 'node:assert/strict';
import type { GrantedResult, LeaseStore } from '../../stores/store.ts';
import type { RuleContext, RuleFamily } from '../rule.ts';
import { granted, requestFor, stillLive } from '../rule.ts';

const RACERS = 32;
const STORES = 4;
const DEFAULT_ROUNDS = 1000;
/** The rounds are raced on so many runs at once, since each waits for an expiry. */
const RUNS = 100;

const FOUR_WORKERS = ['worker-0', 'worker-1', 'worker-2', 'worker-3'];
const ONE_WORKER = FOUR_WORKERS.map(() => 'worker-0');

export const raceRules: RuleFamily = {
  title: 'races',
  rules: {
    [`B1 of ${RACERS} racing acquires of a free run one wins, with a token of its own`]: (context) =>
      withStores(context, async (contexts) => {
        for (let round = 0; round < 5; round += 1) {
          const runId = context.anotherRun();
          const results = await race(contexts, (one, index) =>
            one.store.acquire(request(one, runId, `worker-${index}`)),
          );
          const winners = results.filter(({ status }) => status === 'granted') as GrantedResult[];
          assert.equal(winners.length, 1, `${winners.length} winners`);
          const { lease } = winners[0]!;
          assert.ok(results.every((result) => tokenOf(result) === lease.fencingToken));
          await stillLive({ ...context, runId }, lease);
        }
      }),

    [`TK1 of ${RACERS} racing acquires under one worker id with \`refuse\` one wins`]: (context) =>
      withStores(context, async (contexts) => {
        const runId = context.anotherRun();
        const results = await race(contexts, (one) =>
          one.store.acquire({ ...request(one, runId, 'worker-a'), reacquire: 'refuse' }),
        );
        assert.equal(results.filter(({ status }) => status === 'granted').length, 1);
      }),

    [`B4 of ${RACERS} racing acquires under one worker id with \`extend\` all get one token, and one handle works`]: (
      context,
    ) =>
      withStores(context, async (contexts) => {
        const runId = context.anotherRun();
        const results = await race(contexts, (one) => one.store.acquire(request(one, runId, 'worker-a')));
        const leases = results.map((result) => (result as GrantedResult).lease);
        assert.equal(new Set(leases.map(({ fencingToken }) => fencingToken)).size, 1);
        assert.equal(results.filter((result) => !(result as GrantedResult).extended).length, 1);
        const renewals = await context.store.renew(leases, context.ttlSeconds);
        assert.equal(renewals.filter(({ status }) => status === 'renewed').length, 1);
      }),

    [`B5 of ${RACERS} racing renewals of one lease all succeed`]: (context) =>
      withStores(context, async (contexts) => {
        const lease = await granted(context, { ttlSeconds: context.ttlSeconds * 100 });
        const results = await race(contexts, (one) => one.store.renew([lease], context.ttlSeconds * 100));
        assert.ok(results.every(([result]) => result?.status === 'renewed'));
      }),

    [`B5 batches of renewals over the same leases in opposite orders all succeed`]: (context) =>
      withStores(context, async (contexts) => {
        const runs = Array.from({ length: 20 }, () => ({ ...context, runId: context.anotherRun() }));
        const leases = await Promise.all(runs.map((run) => granted(run, { ttlSeconds: context.ttlSeconds * 100 })));
        const results = await race(contexts, (one, index) =>
          one.store.renew(index % 2 === 0 ? leases : leases.toReversed(), context.ttlSeconds * 100),
        );
        assert.ok(results.flat().every(({ status }) => status === 'renewed'));
      }),

    [`RL3 of ${RACERS} racing releases of one lease one frees it`]: (context) =>
      withStores(context, async (contexts) => {
        const lease = await granted(context);
        const results = await race(contexts, (one) => one.store.release(lease));
        assert.equal(results.filter(Boolean).length, 1);
      }),

    'B12 an acquire sent twice at once with its acquisition id is one lease': async (context) => {
      const twice = request(context, context.runId, 'worker-a');
      const results = await Promise.all([context.store.acquire(twice), context.store.acquire(twice)]);
      const [one, other] = results.map((result) => (result as GrantedResult).lease);
      assert.equal(one?.fencingToken, other?.fencingToken);
      await stillLive(context, one!);
    },

    'TK1 B2 in every round of take-overs one of four racers wins, and the tokens of a run strictly increase': (
      context,
    ) =>
      withStores(context, async (contexts) => {
        const rounds = context.harness.takeOverRounds ?? DEFAULT_ROUNDS;
        const runs = Array.from({ length: Math.min(RUNS, rounds) }, () => context.anotherRun());
        const newest = new Map<string, number>();
        for (let round = 0; round < Math.ceil(rounds / runs.length); round += 1) {
          // Every other round all racers are one worker, told apart by their acquisitions alone.
          const workers = round % 2 === 0 ? FOUR_WORKERS : ONE_WORKER;
          await Promise.all(runs.map((runId) => takeOver(contexts, runId, workers, newest)));
          await context.advance(context.ttlSeconds);
        }
      }),

    'RN8 around the moment of expiry never both a renewal and a take-over succeed': async (context) => {
      const rounds = context.harness.takeOverRounds ?? DEFAULT_ROUNDS;
      for (let raced = 0; raced < rounds; raced += RUNS) {
        for (const { taken, renewed } of await raceAtExpiry(context, Math.min(RUNS, rounds - raced))) {
          assert.ok(!(taken && renewed), 'both succeeded');
          if (!context.harness.timePasses) assert.ok(taken, 'at expiry the take-over was refused');
        }
      }
    },
  },
};

/** Pairs of a renewal and a take-over. On a clock that runs they are spread around the expiry, on a jumped one all are at it. */
async function raceAtExpiry(
  context: RuleContext,
  count: number,
): Promise<ReadonlyArray<{ readonly taken: boolean; readonly renewed: boolean }>> {
  const { store, ttlSeconds, advance } = context;
  const timePasses = context.harness.timePasses ?? false;
  const runs = Array.from({ length: count }, () => ({ ...context, runId: context.anotherRun() }));
  const leases = await Promise.all(runs.map((run) => granted(run)));
  await advance(timePasses ? ttlSeconds * 0.95 : ttlSeconds);
  const pairs = leases.map(async (lease, index) => {
    if (timePasses) await advance((index / count) * ttlSeconds * 0.1);
    const acquire = store.acquire(request(context, lease.runId, 'worker-b'));
    const [taken, [renewed]] = await Promise.all([acquire, store.renew([lease], ttlSeconds)]);
    return { taken: taken.status === 'granted', renewed: renewed?.status === 'renewed' };
  });
  return Promise.all(pairs);
}

async function takeOver(
  contexts: readonly RuleContext[],
  runId: string,
  workers: readonly string[],
  newest: Map<string, number>,
): Promise<void> {
  const racers = workers.map((workerId, index) => {
    const one = contexts[index % contexts.length]!;
    return one.store.acquire({ ...request(one, runId, workerId), reacquire: 'refuse' });
  });
  const results = await Promise.all(racers);
  const tokens = results.filter(({ status }) => status === 'granted').map(tokenOf);
  assert.equal(tokens.length, 1, `${tokens.length} winners`);
  assert.ok(tokens[0]! > (newest.get(runId) ?? 0), `${tokens[0]} is not above ${newest.get(runId)}`);
  newest.set(runId, tokens[0]!);
}

/** Several stores over the same data where the harness can open them, so that no queue of one store orders the racers. */
async function withStores(
  context: RuleContext,
  use: (contexts: readonly RuleContext[]) => Promise<void>,
): Promise<void> {
  const { harness } = context;
  const more = harness.reopen ? STORES - 1 : 0;
  const others: LeaseStore[] = [];
  try {
    while (others.length < more) others.push(await harness.reopen!(context.store));
    await use([context, ...others.map((store) => ({ ...context, store }))]);
  } finally {
    await Promise.all(others.map((store) => store.close()));
  }
}

function race<Result>(
  contexts: readonly RuleContext[],
  call: (context: RuleContext, index: number) => Promise<Result>,
): Promise<Result[]> {
  return Promise.all(Array.from({ length: RACERS }, (_, index) => call(contexts[index % contexts.length]!, index)));
}

function request(context: RuleContext, runId: string, workerId: string) {
  return { ...requestFor(context), runId, workerId };
}

function tokenOf(
  result: { status: 'granted'; lease: { fencingToken: number } } | { status: 'held'; fencingToken: number },
) {
  return result.status === 'granted' ? result.lease.fencingToken : result.fencingToken;
}
