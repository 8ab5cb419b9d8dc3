/** Stores that are wrong in one way are found by the histories that are played on them, as those of the real stores are. */
import { describe, expect, it } from 'vitest';
import type { Fault } from '../testing/planted-faults.ts';
import { check } from './checker.ts';
import type { Asked } from './clients.ts';
import type { Call } from './history.ts';
import type { StoreRules } from './run.ts';
import { distant } from './network.ts';
import { playRun } from './play.ts';
import { checkServerTime } from './server-time.ts';
import { FENCE_ERRORS, wrongFence, wrongLeases } from './wrong-stores.ts';

const SEED = Number(process.env['LESSOR_SEED'] ?? Date.now() % 2 ** 31);
const CLIENTS = 8;
const LOSSES = 0.04;
const RUNS_AT_ONCE = 16;
/** An error that shows in one run of ten is missed once in ten billion times. */
const MOST_BATCHES = 14;
const RULES: StoreRules = { tokens: 'next', clock: 'at its step', slack: 0.001 };

/** Of the kit's faults, those that are about one run and its leases. */
const FOUND: readonly Fault[] = [
  ...(['grants always', 'forgets the token on release', 'forgets the token at expiry'] as const),
  ...(['the same worker keeps its token after expiry', 'expires early', 'revives an expired lease'] as const),
  ...(['ignores the acquisition id in a renewal', 'shortens on renewal', 'does not extend on renewal'] as const),
  ...(['releases by worker id alone', 'releases by token alone', 'frees the run on any release'] as const),
  ...(['refuses a release past expiry', 'keeps the acquisition id on a re-acquire', 'ignores `refuse`'] as const),
  ...(['gives a new token on a re-acquire', 'takes a repeated acquire for contention'] as const),
  ...(['uses a token on a refusal', "judges expiry by the contender's ttl", 'forgets a released run'] as const),
  ...(['a revoked lease can be renewed', 'tells readers an expiry half a millisecond early'] as const),
];

/** Those that the second check finds as well, by the server's own clock. */
const FOUND_BY_SERVER_TIME: readonly Fault[] = [
  ...(['revives an expired lease', 'releases by worker id alone', 'expires early', 'grants always'] as const),
];

describe.concurrent('B1 played histories', { timeout: 600_000 }, () => {
  it('of stores that are right have an order', async () => {
    const fenced = await playSome(wrongFence('none'), SEED, true);
    const leases = await playSome(wrongLeases('none'), SEED, false);
    for (const calls of fenced) expect(check(calls, { ...RULES, tokens: 'rise' })).toMatchObject({ is: 'ok' });
    for (const calls of leases) expect(check(calls, RULES)).toMatchObject({ is: 'ok' });
    expect([...fenced, ...leases].flatMap(checkServerTime)).toEqual([]);
  });

  it.each(FOUND)('find the fault "%s"', (fault) => findsIn(wrongLeases(fault), false, isBad(RULES)));

  it.each(FOUND_BY_SERVER_TIME)('find the fault "%s" by the server’s clock', (fault) =>
    findsIn(wrongLeases(fault), false, (calls) => checkServerTime(calls).length > 0),
  );

  it.each(Object.keys(FENCE_ERRORS))('find the error of the fence: %s', (error) =>
    findsIn(wrongFence(error), true, isBad({ ...RULES, tokens: 'rise' })),
  );
});

function isBad(rules: StoreRules): (calls: readonly Call[]) => boolean {
  return (calls) => check(calls, rules).is === 'bad';
}

async function findsIn(store: Asked, writes: boolean, isFound: (calls: readonly Call[]) => boolean): Promise<void> {
  for (let batch = 0; batch < MOST_BATCHES; batch += 1) {
    if ((await playSome(store, SEED + batch * RUNS_AT_ONCE, writes)).some(isFound)) return;
  }
  expect.fail(`not found in ${MOST_BATCHES * RUNS_AT_ONCE} histories from seed ${SEED}`);
}

function playSome(store: Asked, first: number, writes: boolean): Promise<(readonly Call[])[]> {
  const stores = Array.from({ length: CLIENTS }, (_, index) => distant(store, first + index, LOSSES));
  const seeds = Array.from({ length: RUNS_AT_ONCE }, (_, index) => first + index);
  return Promise.all(seeds.map((seed) => playRun({ stores, runId: `run ${seed}`, seed, writes })));
}
