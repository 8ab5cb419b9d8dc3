import type { KeeperTimes, ReleaseAnswer } from '../../machines/keeper.types.ts';
import type { Clock } from '../clock.ts';
import type { LeaseStore, ReleaseRequest } from '../stores/store.ts';
import { LongTimer } from './actor-clock.ts';
import { asLeaseError, judge, request } from './request.ts';

const FIRST_PAUSE_SECONDS = 0.05;

/**
 * Releases, again and again until there is an answer or `releaseTimeoutSeconds` are over. Never rejects.
 *
 * "Not yours" is an answer, and final. After an attempt without an answer it means that that one had freed the run.
 */
export async function giveBack(
  store: LeaseStore,
  clock: Clock,
  lease: ReleaseRequest,
  { releaseTimeoutSeconds, requestTimeoutSeconds }: KeeperTimes,
): Promise<ReleaseAnswer> {
  const until = clock.monotonicSeconds() + releaseTimeoutSeconds;
  let unanswered = false;
  for (let pause = FIRST_PAUSE_SECONDS; ; pause *= 2) {
    const left = until - clock.monotonicSeconds();
    try {
      const timeoutSeconds = Math.min(requestTimeoutSeconds, left);
      const freed = await request((signal) => store.release(lease, { signal }), { clock, timeoutSeconds });
      return { freed: freed || unanswered };
    } catch (error) {
      const { unknown, retryable } = judge(error);
      unanswered ||= unknown;
      const wait = pause * (0.5 + Math.random() / 2);
      if (!retryable || clock.monotonicSeconds() + wait >= until) return { freed: false, error: asLeaseError(error) };
      await new Promise<void>((resolve) => new LongTimer(clock, wait, resolve));
    }
  }
}
