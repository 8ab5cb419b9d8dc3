import { describe, expect, it } from 'vitest';
import { defaultGraceSeconds, endingAt, endingPlan } from '../../src/cli/deadline.ts';

describe('deadline', () => {
  const plan = { graceSeconds: 5, reserveSeconds: 0.25 };

  it('CM1 a command is told to end a grace before it is killed, and killed before the deadline', () => {
    expect(endingAt(29, plan)).toEqual({ step: 'none', nextInSeconds: 23.75 });
    expect(endingAt(5.25, plan)).toEqual({ step: 'terminate', nextInSeconds: 5 });
    expect(endingAt(0.5, plan)).toEqual({ step: 'terminate', nextInSeconds: 0.25 });
    expect(endingAt(0.25, plan)).toEqual({ step: 'kill', nextInSeconds: 0 });
    expect(endingAt(-7, plan)).toEqual({ step: 'kill', nextInSeconds: 0 });
  });

  it('two renewals, a third of the ttl apart, have their chance before the command is told to end', () => {
    for (const ttlSeconds of [1, 2, 10, 30, 60, 3600, 86_400]) {
      const { graceSeconds, reserveSeconds } = endingPlan(ttlSeconds, defaultGraceSeconds(ttlSeconds));
      const marginSeconds = ttlSeconds * 0.01 + 0.015;
      const secondRenewalAt = (2 * ttlSeconds) / 3;
      expect(ttlSeconds - marginSeconds - reserveSeconds - graceSeconds).toBeGreaterThan(secondRenewalAt);
      expect(reserveSeconds).toBeGreaterThan(0);
    }
  });
});
