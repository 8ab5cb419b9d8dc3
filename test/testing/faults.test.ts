import { describe, expect, it } from 'vitest';
import type { StoreHarness } from '../../src/testing/harness.ts';
import { scenarios } from '../../src/testing/scenarios.ts';
import { storeRules } from '../../src/testing/store-suite.ts';
import { runKit } from './collector.ts';
import type { Fault } from './planted-faults.ts';
import { FAULTS } from './planted-faults.ts';
import { WrongStore } from './wrong-stores.ts';

/** The rule that catches each fault. Most are caught by others too. */
const CAUGHT_BY: Record<Exclude<Fault, 'none'>, string> = {
  'grants always': 'B1 of 32 racing acquires of a free run one wins, with a token of its own',
  'forgets the token on release':
    'B2 tokens strictly increase from lease to lease of a run: across release, expiry, take-over and revocation',
  'forgets the token at expiry':
    'B2 tokens strictly increase from lease to lease of a run: across release, expiry, take-over and revocation',
  'the same worker keeps its token after expiry':
    'AQ11 B12 once the lease has ended, the repeat of its acquire is an acquire like any other',
  'expiry is exclusive': 'RN8 at expiry a take-over is granted, and a renewal that comes after it is refused',
  'expires early': 'just below its ttl a lease is live, for its worker and for others',
  'ignores the token in a renewal':
    'B5 a renewal succeeds exactly when run, worker, token and acquisition are those of the live lease',
  'ignores the acquisition id in a renewal': 'RN9 the older handle of the same worker can neither renew nor release',
  'ignores the worker in a renewal':
    'B5 a renewal succeeds exactly when run, worker, token and acquisition are those of the live lease',
  'revives an expired lease': 'B5 nothing revives an expired lease, also when nobody took over',
  'shortens on renewal': 'B5 a renewal never shortens a lease',
  'does not extend on renewal': 'B5 a renewal extends to the ttl that it was sent with, from now',
  'answers renewals out of order': 'B5 a batch of 200 leases is answered in order',
  'drops the answers for repeated references': 'NM5 no references get no answers, and one lease named twice gets two',
  'releases by worker id alone': "RL1 a late release does not free the successor's lease",
  'releases by token alone':
    'RL2 a release that was delayed on its way does not free a later acquisition of the same worker',
  'refuses a release past expiry': 'B6 a release works past expiry, while nobody took over',
  'frees the run on any release':
    'B6 a release succeeds exactly when run, worker, token and acquisition are those of the current lease',
  'keeps the acquisition id on a re-acquire':
    'B4 AQ11 a new acquire by the same worker keeps the token and retires the older handle',
  'gives a new token on a re-acquire':
    'B4 AQ11 a new acquire by the same worker keeps the token and retires the older handle',
  'shortens on a re-acquire': 'B4 B12 no acquire shortens a lease',
  'ignores `refuse`': 'B4 with `refuse` its own worker is told that the run is held, and its lease stays',
  'takes a repeated acquire for contention':
    'AQ1 B12 an acquire repeated with its acquisition id returns that same lease, extended from now',
  'gives another worker the lease of a repeated acquisition id': 'B12 an acquisition id gives another worker nothing',
  'uses a token on a refusal': 'B2 a refusal and an extension use no token',
  "judges expiry by the contender's ttl":
    'AQ4 a contender judges a lease by its stored expiry, at the first ask, whatever its own ttl',
  'rounds the ttl down to whole seconds': 'NM2 B8 a ttl between two units is never rounded down',
  'tells readers an expiry half a millisecond early':
    'B8 the expiry that others see is never before the one that the worker counts with',
  'joins names without escaping': 'B7 references are compared field by field, since joined names can be equal',
  'trims names': 'NM3 different run names are different runs, and the same name is one',
  'ignores the case of names': 'NM3 different run names are different runs, and the same name is one',
  'cuts names short': 'NM3 different run names are different runs, and the same name is one',
  'matches a prefix as a pattern': 'NM3 a prefix is compared character by character, and is no pattern',
  'lists in the order of the first lease':
    'a list has every record of its prefix once, as `read` gives it, in the order of the run ids',
  'forgets a released run': 'B2 the fence is 0 before the first lease, and then the highest token that was issued',
  'forgets who revoked': 'TK9 who revoked a lease, when and why stands in the record until the next lease',
  'a revoked lease can be renewed':
    'B19 TK9 a revoked lease is refused at once, with its reason, and the next token is higher',
  'tells the acquisition id to readers': 'B23 nothing that is read, listed or revoked carries an acquisition id',
  'takes any argument': 'NM1 acquire: what makes no sense is refused by name, and nothing changes',
  'checks after it has changed something': 'NM1 acquire: what makes no sense is refused by name, and nothing changes',
  'answers after it was closed': 'B15 closing twice, at once and again, is fine, and every later call rejects',
  'checks, waits, and then writes':
    'TK1 B2 in every round of take-overs one of four racers wins, and the tokens of a run strictly increase',
  'sends what was aborted before': 'a call whose signal has aborted already is never sent',
  'calls an outcome that it cannot know unavailable':
    'B11 an acquire whose signal aborts before the answer is of unknown outcome or was never sent, and its repeat is right',
  'keeps its leases to itself': 'B9 a grant outlives the store that gave it: held for others, live for its worker',
  'counts anew in another process': 'B2 tokens rise from store to store of one data, with every store that is opened',
  'answers as if free when it cannot be asked':
    'B14 AQ6 a store that cannot be asked rejects every call, and never answers as if the run were free',
};

/** Found by the generated scenarios too, without any rule written by hand. */
const FOUND_BY_SCENARIOS: readonly Fault[] = [
  ...(['grants always', 'forgets the token on release', 'forgets the token at expiry'] as const),
  ...(['the same worker keeps its token after expiry', 'expiry is exclusive', 'revives an expired lease'] as const),
  ...(['ignores the token in a renewal', 'ignores the acquisition id in a renewal'] as const),
  ...(['ignores the worker in a renewal', 'does not extend on renewal', 'releases by worker id alone'] as const),
  ...(['releases by token alone', 'refuses a release past expiry', 'frees the run on any release'] as const),
  ...(['keeps the acquisition id on a re-acquire', 'gives a new token on a re-acquire', 'ignores `refuse`'] as const),
  ...(['takes a repeated acquire for contention', 'uses a token on a refusal', 'forgets a released run'] as const),
];

const SCENARIOS = new Set(scenarios('store').map(({ title }) => title));

describe('the kit', () => {
  it('passes a store without a fault, every rule of it', async () => {
    const report = await runKit(harnessFor('none'));
    expect([...report.failed]).toEqual([]);
    expect(report.passed).toHaveLength(storeRules().length + 1);
    expect(report.skipped).toEqual([]);
  });

  const faults = FAULTS.filter((fault) => fault !== 'none');

  it.each(faults.map((fault) => [fault, CAUGHT_BY[fault]] as const))(
    'fails a store that has the fault "%s", by the rule "%s"',
    async (fault, rule) => {
      const report = await runKit(harnessFor(fault), (title) => title === rule);
      expect([...report.failed.keys()]).toEqual([rule]);
    },
  );

  it.each(FOUND_BY_SCENARIOS)('finds the fault "%s" by generated scenarios alone', async (fault) => {
    const report = await runKit(harnessFor(fault), (title) => SCENARIOS.has(title));
    expect(report.failed.size).toBeGreaterThan(0);
  });

  it('names each rule once', () => {
    expect(new Set(storeRules()).size).toBe(storeRules().length);
  });

  it('skips a rule for a reason, and says so in its title', async () => {
    const rule = 'B14 a closed store says that it could not be asked, as a lease error';
    const skip = [{ rule, reason: 'this store cannot be closed' }];
    const report = await runKit({ ...harnessFor('answers after it was closed'), skip }, (title) => title === rule);
    expect(report.skipped).toEqual([`${rule} (skipped: this store cannot be closed)`]);
    expect([...report.failed.keys()]).toEqual([]);
  });

  it('skips the rules for which the harness has nothing, and says what', async () => {
    const { reopen: _1, plantToken: _2, unreachable: _3, ...plain } = harnessFor('none');
    const { skipped } = await runKit(plain, () => false);
    expect(skipped).toHaveLength(6);
    for (const need of ['reopen', 'plantToken', 'unreachable']) {
      expect(skipped.some((title) => title.endsWith(`(skipped: the harness has no \`${need}\`)`))).toBe(true);
    }
  });

  it.each([
    ['names no rule', { rule: 'B99 a rule that was renamed', reason: 'it was renamed' }],
    ['gives no reason', { rule: 'B5 a renewal never shortens a lease', reason: ' ' }],
  ])('fails for a skip that %s', async (_what, skip) => {
    const { failed } = await runKit({ ...harnessFor('none'), skip: [skip] }, (title) => title.startsWith('every skip'));
    expect([...failed.keys()]).toEqual(['every skip names a rule and gives a reason']);
  });
});

function harnessFor(fault: Fault): StoreHarness {
  let now = 0;
  return {
    name: fault,
    create: async () => new WrongStore(fault, () => now),
    ttlSeconds: 10,
    advance: async (seconds) => void (now += seconds),
    reopen: async (store) => (store as WrongStore).another(),
    unreachable: async () => {
      const store = new WrongStore(fault, () => now);
      store.cutOff();
      return store;
    },
    plantToken: async (store, runId, fencingToken) => (store as WrongStore).plantToken(runId, fencingToken),
    takeOverRounds: 200,
  };
}
