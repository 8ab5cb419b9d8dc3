import { describe, expect, it } from 'vitest';
import { endingPlan } from '../../src/cli/deadline.ts';
import { isRunning } from '../../src/cli/process-group.ts';
import { Supervision } from '../../src/cli/supervision.ts';
import { LeaseLostError } from '../../src/errors.ts';
import type { LostReason } from '../../src/lease.ts';
import { STUBBORN, Scene, until } from './commands.ts';

/** A lease that runs out, unless it is renewed or lost by hand. */
class TestLease {
  readonly runId = 'run-1';
  readonly workerId = 'worker-a';
  readonly fencingToken = 7;
  readonly acquisitionId = 'acquisition-1';
  readonly #controller = new AbortController();
  readonly signal = this.#controller.signal;
  #endsAt = 0;

  constructor(seconds: number) {
    this.renew(seconds);
  }

  renew(seconds: number): void {
    this.#endsAt = performance.now() + seconds * 1000;
  }

  lose(reason: LostReason): void {
    this.#controller.abort(new LeaseLostError(this, reason));
  }

  remainingSeconds(): number {
    return this.signal.aborted ? 0 : (this.#endsAt - performance.now()) / 1000;
  }
}

/** A command that ignores SIGTERM, supervised; `words` collects what would be told. */
async function supervise(scene: Scene, lease: TestLease, ttlSeconds: number, graceSeconds: number) {
  const { pid } = scene.shell(STUBBORN);
  await until('the command', () => scene.read('beat') !== '');
  const words: string[] = [];
  const supervision = new Supervision({
    lease,
    plan: endingPlan(ttlSeconds, graceSeconds),
    leaderId: pid,
    onTerminated: (why) => words.push(why),
  });
  return { pid, words, supervision };
}

describe('supervision', () => {
  it('CM1 a lease that is not renewed: asked to end while it holds, gone at its deadline, lost', async () => {
    await using scene = new Scene();
    const lease = new TestLease(60);
    const { pid, words, supervision } = await supervise(scene, lease, 3, 1);
    lease.renew(3);
    const deadline = Date.now() / 1000 + lease.remainingSeconds();
    await until('the end of the command', () => !isRunning(pid));
    expect(scene.askedAt()).toBeLessThan(deadline);
    expect(scene.lastAliveAt()).toBeLessThan(deadline);
    expect(supervision.lost).toBe(true);
    expect(words).toEqual(['The lease could not be renewed in time']);
    supervision.stop();
  });

  it.each(['superseded', 'revoked'] as const)(
    'CM1 a lease that is %s: asked to end at once, killed after the short grace, lost',
    async (reason) => {
      await using scene = new Scene();
      const lease = new TestLease(60);
      const { pid, words, supervision } = await supervise(scene, lease, 60, 0.5);
      const lostAt = performance.now();
      lease.lose(reason);
      await until('the request to end', () => scene.read('asked') !== '');
      await until('the end of the command', () => !isRunning(pid), 5);
      expect(performance.now() - lostAt).toBeGreaterThanOrEqual(500);
      expect(supervision.lost).toBe(true);
      expect(words).toEqual([`Lost the lease on run "run-1" (token 7): ${reason}`]);
      supervision.stop();
    },
  );

  it('CM1 a lease whose deadline has passed: killed at once', async () => {
    await using scene = new Scene();
    const lease = new TestLease(60);
    const { pid, supervision } = await supervise(scene, lease, 60, 10);
    lease.lose('expired');
    await until('the end of the command', () => !isRunning(pid), 5);
    expect(supervision.lost).toBe(true);
    supervision.stop();
  });

  it('a lease that is renewed again and again leaves its command alone', async () => {
    await using scene = new Scene();
    const lease = new TestLease(1);
    const { pid, supervision } = await supervise(scene, lease, 1, 0.2);
    const start = performance.now();
    await until('two ttls', () => {
      lease.renew(1);
      return performance.now() - start > 2000;
    });
    expect(supervision.lost).toBe(false);
    expect(isRunning(pid)).toBe(true);
    expect(scene.read('asked')).toBe('');
    supervision.stop();
  });

  it('a renewal after the request to end gives the command no more time', async () => {
    await using scene = new Scene();
    const lease = new TestLease(1.2);
    const { pid, supervision } = await supervise(scene, lease, 1.2, 0.5);
    await until('the request to end', () => scene.read('asked') !== '');
    lease.renew(60);
    await until('the end of the command', () => !isRunning(pid), 5);
    expect(supervision.lost).toBe(true);
    supervision.stop();
  });

  it('a command that the watchdog has told to end is not told again, and is lost', async () => {
    await using scene = new Scene();
    const lease = new TestLease(60);
    const { pid, words, supervision } = await supervise(scene, lease, 60, 0.3);
    supervision.terminatedByWatchdog();
    await until('the end of the command', () => !isRunning(pid), 5);
    expect(scene.read('asked')).toBe('');
    expect(words).toEqual([]);
    expect(supervision.lost).toBe(true);
    supervision.stop();
    supervision.terminatedByWatchdog(); // its word may come late, and must not start anything
  });
});
