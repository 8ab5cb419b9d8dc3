/** The checker is checked: it calls no good history bad and no bad one good, by hand-made ones and by stores that are wrong. */
import { describe, expect, it } from 'vitest';
import { BAD, BAD_TOKENS } from './bad-histories.ts';
import { check, type Verdict } from './checker.ts';
import { GOOD, GOOD_RISING, GOOD_WITHIN_THE_CALL } from './good-histories.ts';
import { inOrder, print, type Answer, type Call } from './history.ts';
import { hasOrder } from './oracle.ts';
import { acquire, call, granted, release, released, renew, renewed, unknown } from './planted.ts';
import type { StoreRules } from './run.ts';
import { checkServerTime } from './server-time.ts';
import { smallHistory } from './small-histories.ts';

const SEED = Number(process.env['LESSOR_SEED'] ?? Date.now() % 2 ** 31);
const SMALL_HISTORIES = 1000;

const EXACT: StoreRules = { tokens: 'next', clock: 'at its step', slack: 0 };
const LOOKING: StoreRules = { ...EXACT, clock: 'within the call' };
const RISING: StoreRules = { ...EXACT, tokens: 'rise' };
const ALL = [EXACT, LOOKING, RISING, { ...LOOKING, tokens: 'rise' }] as const;

describe('B1 the checker finds an order', () => {
  it.each(Object.entries(GOOD))('for %s', (_what, calls) => {
    for (const rules of ALL) expect(check(calls, rules)).toMatchObject({ is: 'ok' });
  });

  it.each(Object.entries(GOOD_RISING))('where tokens rise, for %s', (_what, calls) => {
    expect(check(calls, RISING)).toMatchObject({ is: 'ok' });
    expect(check(calls, EXACT)).toMatchObject({ is: 'bad' });
  });

  it.each(Object.entries(GOOD_WITHIN_THE_CALL))('where a look keeps nobody off, for %s', (_what, calls) => {
    expect(check(calls, LOOKING)).toMatchObject({ is: 'ok' });
    expect(check(calls, EXACT)).toMatchObject({ is: 'bad' });
  });
});

describe('B1 the checker finds no order', () => {
  it.each(Object.entries(BAD))('for %s', (_what, calls) => {
    for (const rules of ALL) expect(check(calls, rules)).toMatchObject({ is: 'bad' });
  });

  it.each(Object.entries(BAD_TOKENS))('where tokens are per run, for %s', (_what, calls) => {
    expect(check(calls, EXACT)).toMatchObject({ is: 'bad' });
    expect(check(calls, RISING)).toMatchObject({ is: 'ok' });
  });
});

describe('B1 the checker and the plainest search agree', () => {
  it.each([EXACT, LOOKING])('on small histories, with the clock $clock', { timeout: 600_000 }, (rules) => {
    const counts = { ok: 0, bad: 0 };
    for (let seed = SEED; seed < SEED + SMALL_HISTORIES; seed += 1) {
      const calls = smallHistory(seed);
      const expected = hasOrder(calls, rules === LOOKING) ? 'ok' : 'bad';
      expect(check(calls, rules).is, `seed ${seed}\n${print(calls)}`).toBe(expected);
      counts[expected] += 1;
    }
    expect(Math.min(counts.ok, counts.bad), JSON.stringify(counts)).toBeGreaterThan(SMALL_HISTORIES / 20);
  });
});

describe('a verdict', () => {
  it('names the first answer that nothing explains, and leaves out what came after it', () => {
    const bad = BAD['B5 an expired lease that is renewed after it was seen expired']!;
    const after = GOOD['B2 a lease after the release of another']!.map((call) => ({
      ...call,
      at: call.at + 500,
      end: call.end + 500,
    }));
    const verdict = check([...after, ...bad].toReversed(), EXACT);
    expect(verdict).toMatchObject({ is: 'bad', prefix: inOrder(bad) });
    expect((verdict as { why: string }).why).toContain(
      'client 0: renew ttl=100 worker=a token=1 acquisition=a1 -> renewed',
    );
    expect((verdict as { why: string }).why).toContain('the lease has expired');
  });

  it.each(Object.entries(BAD))('blames the last answer of %s', (_what, calls) => {
    const { prefix } = check(calls, EXACT) as Extract<Verdict, { is: 'bad' }>;
    expect(prefix.filter(isAnswered)).toEqual(inOrder(calls.filter(isAnswered)));
  });

  it('is open when the search would take too long', () => {
    expect(
      check(
        GOOD['B12 an acquire repeated with its id extends, and after the end it is an acquire like any other']!,
        EXACT,
        2,
      ),
    ).toEqual({ is: 'undecided', steps: 3 });
  });

  it('does not depend on the order in which the calls are given', () => {
    for (const calls of Object.values(GOOD)) expect(check(calls.toReversed(), EXACT)).toMatchObject({ is: 'ok' });
    for (const calls of Object.values(BAD)) expect(check(calls.toReversed(), EXACT)).toMatchObject({ is: 'bad' });
  });
});

describe('B5 the check by the server’s own clock', () => {
  const until = (answer: Answer, moment: number): Answer => ({ ...answer, until: moment }) as Answer;
  const first = call(0, 9, acquire('a1'), until(granted(1), 105));

  it('sees a renewal at the expiry itself, and none before it', () => {
    const renewedAt = (moment: number): Call => call(99, 120, renew('a1', 1), until(renewed, moment + 100));
    expect(checkServerTime([first, renewedAt(104.999)])).toEqual([]);
    expect(checkServerTime([first, renewedAt(105)])).toHaveLength(1);
    expect(checkServerTime([first, unknown(50, renew('a1', 1)), renewedAt(105)])).toEqual([]);
  });

  it('takes an expiry that several calls are told of for the work of the longest ttl', () => {
    const long = call(51, 60, renew('a1', 1), until(renewed, 158));
    const short = call(50, 70, renew('a1', 1, 50), until(renewed, 158));
    expect(checkServerTime([first, short, long])).toEqual([]);
    expect(checkServerTime([first, short])).toHaveLength(1);
  });

  it('sees a grant just before the expiry, and none at it or after a release', () => {
    const grantedAt = (moment: number): Call => call(99, 120, acquire('b1'), until(granted(2), moment + 100));
    expect(checkServerTime([first, grantedAt(105)])).toEqual([]);
    expect(checkServerTime([first, grantedAt(104.999)])).toHaveLength(1);
    expect(checkServerTime([first, call(50, 51, release('a1', 1), released), grantedAt(104.999)])).toEqual([]);
    expect(checkServerTime([first, unknown(50, release('a1')), grantedAt(60)])).toEqual([]);
  });
});

function isAnswered({ answer }: Call): boolean {
  return answer !== null;
}
