/** Kills workers, and stops them for longer than their lease lives, in the middle of their jobs, as the seed wants it. */

/** Numbers from 0 to below 1, the same ones for the same seed (mulberry32). */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class Troubles {
  killed = 0;
  stopped = 0;
  #actor;
  #crew;
  #options;
  /** So many jobs are done when each trouble comes, in order. */
  #moments;
  #timers = new Set();

  constructor({ actor, crew, ...options }) {
    const { count, random } = options;
    const { jobIds } = actor.getSnapshot().context;
    this.#actor = actor;
    this.#crew = crew;
    this.#options = options;
    this.#moments = Array.from({ length: count }, () => random() * 0.9 * jobIds.length).sort(
      (one, other) => one - other,
    );
    actor.subscribe({
      next: ({ context }) => this.#follow(context.done),
      complete: () => this.#end(),
      error: () => this.#end(),
    });
  }

  #follow(done) {
    const { random, workSeconds } = this.#options;
    while (this.#moments.length > 0 && this.#moments[0] <= done) {
      this.#moments.shift();
      this.#after(random() * workSeconds, () => this.#strike());
    }
  }

  /** Kills and stops in turn: one that has a job, one that is in the middle of its work. One worker always goes on. */
  #strike() {
    const { random, say, workers } = this.#options;
    const { busy, stopped } = this.#crew;
    const isStop = this.stopped < this.killed && stopped.length + 1 < workers;
    const targets = isStop ? busy.filter((workerId) => this.#isAtWork(workerId)) : busy;
    if (targets.length === 0) return this.#after(0.01, () => this.#strike());
    const workerId = targets[Math.floor(random() * targets.length)];
    const jobId = this.#crew.jobOf(workerId);
    if (isStop) {
      this.stopped += 1;
      say(`stops ${workerId}, which has ${jobId}`);
      this.#crew.stop(workerId);
      this.#wakeLater(workerId, jobId, performance.now());
    } else {
      this.killed += 1;
      say(`kills ${workerId}, which has ${jobId}`);
      this.#crew.kill(workerId);
    }
  }

  /**
   * Once another worker has done its job; then its write comes too late. But a worker may have been stopped while it had a
   * SQLite file locked, and then nobody does anything: so not later than after two ttls.
   */
  #wakeLater(workerId, jobId, since) {
    this.#after(0.05, () => {
      const { ttlSeconds, say } = this.#options;
      const ttls = (performance.now() - since) / 1000 / ttlSeconds;
      const isDone = this.#stateOf(jobId)?.matches('done');
      if (ttls < 2 && !(isDone && ttls > 1)) return this.#wakeLater(workerId, jobId, since);
      say(`wakes ${workerId}`);
      this.#crew.wake(workerId);
    });
  }

  #isAtWork(workerId) {
    const state = this.#stateOf(this.#crew.jobOf(workerId));
    return state?.matches({ open: 'running' }) && state.context.workerId === workerId;
  }

  #stateOf(jobId) {
    return this.#actor.getSnapshot().children[jobId]?.getSnapshot();
  }

  #after(seconds, act) {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, seconds * 1000);
    this.#timers.add(timer);
  }

  #end() {
    for (const timer of this.#timers) clearTimeout(timer);
  }
}
