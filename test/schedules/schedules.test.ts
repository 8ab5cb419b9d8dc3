/**
 * V5. Every order of what may happen around one hold, each with effects and answers of its own, and orders drawn with more
 * in them: `LESSOR_SCHEDULES` in all, from the seed `LESSOR_SEED` on.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { randomOf } from '../support/random.ts';
import { brokenManagers } from './broken.ts';
import { OUTCOMES } from './outcome.ts';
import { play } from './play.ts';
import type { Schedule } from './schedule.ts';
import { describeSchedule, drawOrder, everyOrder, scheduleOf } from './schedule.ts';
import type { MakeSubject } from './subject.ts';
import { shipped } from './subject.ts';

const SCHEDULES = Number(process.env['LESSOR_SCHEDULES'] ?? 20_000);
const FIRST = Number(process.env['LESSOR_SEED'] ?? 1);
const ORDERS = everyOrder();
/** A broken manager must be found within so many schedules. */
const WITHIN = 500;
const STRIDE = 7919;

/** The managers' jitter comes from the seed, too. Not a spy: it would keep every call. */
const systemRandom = Math.random;
const unhandled: unknown[] = [];
const note = (error: unknown): void => {
  unhandled.push(error);
};
beforeAll(() => {
  process.on('unhandledRejection', note);
});
afterAll(() => {
  process.off('unhandledRejection', note);
});
afterEach(() => {
  Math.random = systemRandom;
});

/** Each order once, then drawn ones. */
function scheduleAt(index: number): Schedule {
  const seed = FIRST + index;
  return scheduleOf(ORDERS[index] ?? drawOrder(randomOf(-seed)), seed);
}

async function played(index: number, make: MakeSubject) {
  const schedule = scheduleAt(index);
  Math.random = randomOf(schedule.seed);
  const { outcome, violations } = await play(schedule, make);
  const thrown = unhandled.splice(0).map((error) => `C14: nobody handles ${String(error)}`);
  return { schedule, outcome, violations: [...violations, ...thrown] };
}

describe('V5 orders of events around one hold', { timeout: 3_600_000 }, () => {
  it('C1-C7, C9, C10, C12, C14: whatever comes first, the hold ends as it must, and leaves nothing behind', async () => {
    const counts = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0]));
    const wrong: string[] = [];
    for (let index = 0; index < SCHEDULES; index += 1) {
      const { schedule, outcome, violations } = await played(index, shipped);
      counts[outcome] = (counts[outcome] ?? 0) + 1;
      if (violations.length > 0) wrong.push(`${violations.join('; ')} in ${describeSchedule(schedule)}`);
    }
    console.log(
      `V5 ${SCHEDULES} schedules, ${ORDERS.length} of them every order, seed ${FIRST}:`,
      JSON.stringify(counts),
    );
    expect(wrong.length, wrong.slice(0, 5).join('\n')).toBe(0);
    for (const [outcome, count] of Object.entries(counts)) expect(count, `void: ${outcome}`).toBeGreaterThan(0);
  });

  it('C14 a renewal that is on its way when a suspension is noticed leaves no timer', async () => {
    const renewal = { method: 'renew', number: 1, part: 'effect' } as const;
    const acquire = { method: 'acquire', number: 1 } as const;
    const start = ['hold', { ...acquire, part: 'effect' }, { ...acquire, part: 'answer' }] as const;
    const schedule = scheduleOf([...start, renewal, 'deadline', 'end'], FIRST);
    const fates = { 'acquire 1': 'answered', 'renew 1': 'silent' } as const;
    const { outcome, violations } = await play({ ...schedule, fates, deadline: 'sleep' }, shipped);
    expect({ outcome, violations }).toEqual({ outcome: 'lost, as the work found', violations: [] });
  });

  for (const [fault, { property, make }] of Object.entries(brokenManagers)) {
    it(`finds by ${property} that ${fault}`, async () => {
      for (let index = 0; index < WITHIN; index += 1) {
        // From all over the orders, and from those that are drawn.
        const { violations } = await played((index * STRIDE) % (2 * ORDERS.length), make);
        if (violations.some((violation) => violation.startsWith(`${property}:`))) return;
      }
      expect.fail(`not found within ${WITHIN} schedules`);
    });
  }
});
