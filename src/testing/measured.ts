import type { StoreHarness } from './harness.ts';
import type { Rule } from './rule.ts';
import { freshRunId } from './rule.ts';

/** Beyond this ttl a machine that is still too slow fails the rule. */
const LONGEST_TTL_SECONDS = 20;

/**
 * Runs the rule on a store of its own. Where time passes by itself, a failure proves nothing when the calls took a good part of the
 * ttl, so the rule is then measured with a longer one, on a new store. That is no second chance: whatever fails in time has failed.
 */
export async function measured(rule: Rule, harness: StoreHarness): Promise<void> {
  let { ttlSeconds } = harness;
  for (;;) {
    let waitedSeconds = 0;
    const startedAt = performance.now();
    const advance = async (seconds: number) => {
      await harness.advance(seconds);
      waitedSeconds += seconds;
    };
    const store = await harness.create();
    try {
      return await rule({ store, harness, ttlSeconds, runId: freshRunId(), anotherRun: freshRunId, advance });
    } catch (error) {
      const lateSeconds = (performance.now() - startedAt) / 1000 - waitedSeconds;
      const inTime = !harness.timePasses || lateSeconds < ttlSeconds / 4;
      if (inTime || ttlSeconds >= LONGEST_TTL_SECONDS) throw error;
      ttlSeconds *= 4;
    } finally {
      await store.close();
    }
  }
}
