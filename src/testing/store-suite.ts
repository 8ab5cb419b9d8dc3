/**
 * The kit that holds a store to the contract: every rule of `LeaseStore` as a test, races included, and the scenarios that
 * are generated from the lease machine. It brings no test runner.
 */
import assert from 'node:assert/strict';
import { Batch } from './batch.ts';
import type { SkippedRule, StoreHarness, TestRunner } from './harness.ts';
import { measured } from './measured.ts';
import { playScenario } from './play.ts';
import type { Rule, RuleFamily } from './rule.ts';
import { acquireRules } from './rules/acquire.ts';
import { badInputRules } from './rules/bad-input.ts';
import { closeRules, unreachableRules } from './rules/close.ts';
import { expiryRules } from './rules/expiry.ts';
import { listRules } from './rules/list.ts';
import { nameRules } from './rules/names.ts';
import { plantedTokenRules, tokenRules } from './rules/tokens.ts';
import { raceRules } from './rules/races.ts';
import { readRules } from './rules/read.ts';
import { releaseRules } from './rules/release.ts';
import { renewRules } from './rules/renew.ts';
import { reopenRules } from './rules/reopen.ts';
import { revokeRules } from './rules/revoke.ts';
import { scenarios } from './scenarios.ts';
import { StoreSubject } from './store-subject.ts';

const FAMILIES: readonly RuleFamily[] = [
  acquireRules,
  renewRules,
  releaseRules,
  revokeRules,
  expiryRules,
  tokenRules,
  plantedTokenRules,
  nameRules,
  badInputRules,
  readRules,
  listRules,
  closeRules,
  reopenRules,
  unreachableRules,
  scenarioFamily(),
];

/** Races are measured on a machine that does nothing else, so that the racers do race. */
const RACES = raceRules;

/** The sentence of every rule, as tests are named and skips name them. */
export function storeRules(): readonly string[] {
  return [...FAMILIES, RACES].flatMap(({ rules }) => Object.keys(rules));
}

/**
 * Defines the tests of a store. They fail for each rule of the contract that it breaks.
 *
 * The runner should allow a test half a minute: races on a real server take some seconds.
 *
 * @example
 * import { describe, it } from 'vitest';
 *
 * let now = 0;
 * testLeaseStore({ describe, it }, {
 *   name: 'my store',
 *   create: async () => new MyStore({ now: () => now }),
 *   ttlSeconds: 10,
 *   advance: async (seconds) => void (now += seconds),
 * });
 */
export function testLeaseStore({ describe, it }: TestRunner, harness: StoreHarness): void {
  const skips = harness.skip ?? [];
  describe(`${harness.name} keeps the contract of a lease store`, () => {
    it('every skip names a rule and gives a reason', async () => checkSkips(skips));
    const batch = new Batch(harness.timePasses ?? false);
    for (const family of FAMILIES) defineFamily({ describe, it }, harness, family, batch);
    defineFamily({ describe, it }, harness, RACES, new Batch(false));
  });
}

function defineFamily({ describe, it }: TestRunner, harness: StoreHarness, family: RuleFamily, batch: Batch): void {
  describe(family.title, () => {
    for (const [sentence, rule] of Object.entries(family.rules)) {
      const reason = reasonToSkip(harness, family, sentence);
      if (reason === undefined) {
        batch.add(sentence, () => measured(rule, harness));
        it(sentence, () => batch.result(sentence));
      } else if (it.skip) {
        it.skip(`${sentence} (skipped: ${reason})`, async () => undefined);
      }
    }
  });
}

function reasonToSkip(harness: StoreHarness, { needs }: RuleFamily, sentence: string): string | undefined {
  const skip = harness.skip?.find(({ rule }) => rule === sentence);
  if (skip) return skip.reason;
  return needs === undefined || harness[needs] ? undefined : `the harness has no \`${needs}\``;
}

function checkSkips(skips: readonly SkippedRule[]): void {
  const rules = new Set(storeRules());
  for (const { rule, reason } of skips) {
    assert.ok(rules.has(rule), `A skip names a rule that does not exist: ${JSON.stringify(rule)}`);
    assert.ok(reason.trim() !== '', `The skip of ${JSON.stringify(rule)} gives no reason`);
  }
}

/** A rule for each generated scenario. */
function scenarioFamily(): RuleFamily {
  const rules = scenarios('store').map((scenario): [string, Rule] => [
    scenario.title,
    async ({ store, harness, ttlSeconds, runId, advance }) => {
      const timePasses = harness.timePasses ?? false;
      await playScenario(scenario, new StoreSubject({ store, runId, ttlSeconds, advance, timePasses }));
    },
  ]);
  return { title: 'scenarios generated from the lease machine', rules: Object.fromEntries(rules) };
}
