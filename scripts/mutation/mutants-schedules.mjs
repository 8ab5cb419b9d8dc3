const TESTS = ['test/schedules/schedules.test.ts'];

/** Errors of the manager and of the keeper machine that some order of events brings out. @type {readonly import('./mutant.mjs').Mutant[]} */
export const scheduleMutants = of([
  {
    name: 'the deadline counts from the reply',
    property: 'C1',
    file: 'src/manager/keeper-actors.ts',
    from: 'const deadline = deadlineAfter(sentAt, times);',
    to: 'const deadline = deadlineAfter(momentOf(clock), times);',
  },
  {
    name: 'the deadline of a renewal counts from its reply',
    property: 'C1',
    file: 'src/manager/renewals.ts',
    from: 'laterOf(one.deadline, deadlineAfter(sentAt, one.times))',
    to: 'laterOf(one.deadline, deadlineAfter(momentOf(this.#clock), one.times))',
  },
  {
    name: 'the worker counts without a margin',
    property: 'C1',
    file: 'src/manager/worker-deadline.ts',
    from: 'const seconds = ttlSeconds - marginSeconds;',
    to: 'const seconds = ttlSeconds + 0 * marginSeconds;',
  },
  {
    name: 'who asks is told by a timer alone',
    property: 'C2',
    file: 'src/manager/held-lease.ts',
    from: 'if (this.#ending === null && secondsLeft(this.#deadline, this.#clock) <= 0) {',
    to: 'if (this.#ending === null && this.#deadline === null) {',
  },
  {
    name: 'the clock since boot decides nothing',
    property: 'C2',
    file: 'src/manager/worker-deadline.ts',
    from: 'return Math.min(deadline.monotonicSeconds - clock.monotonicSeconds(), deadline.bootSeconds - clock.bootSeconds());',
    to: 'return deadline.monotonicSeconds - clock.monotonicSeconds();',
  },
  {
    name: 'a renewal is sent past the deadline',
    property: 'C3',
    file: 'src/manager/renewals.ts',
    from: `      if (one.isStopped || secondsLeft(one.deadline, this.#clock) <= 0) {
        one.answer({ status: 'late' });
        continue;
      }
`,
    to: '',
  },
  {
    name: 'a late yes renews',
    property: 'C4',
    file: 'src/manager/renewals.ts',
    from: `    if (secondsLeft(one.deadline, this.#clock) <= 0) {
      this.#onLateExtension(one.lease, one.times);
      return { status: 'late' };
    }
`,
    to: '',
  },
  {
    name: 'a late extension is not given back',
    property: 'C4',
    file: 'src/manager/renewals.ts',
    from: 'if (extended && secondsLeft(one.deadline, this.#clock) <= 0) this.#onLateExtension(one.lease, one.times);',
    to: 'void extended;',
  },
  {
    name: 'a grant counts that arrives after its deadline',
    property: 'C5',
    file: 'src/manager/keeper-actors.ts',
    from: 'if (secondsLeft(deadline, clock) > 0) return',
    to: 'if (secondsLeft(deadline, clock) > -Infinity) return',
  },
  {
    name: 'an unavailable store is a loss',
    property: 'C6',
    file: 'machines/keeper.rules.ts',
    from: "isFailed: (_: KeeperContext, step: KeeperStep) => renewal(step).status === 'failed',",
    to: "isFailed: (_: KeeperContext, step: KeeperStep) => renewal(step).status === 'late',",
  },
  {
    name: 'a failed renewal is not repeated',
    property: 'C6',
    file: 'machines/keeper.machine.ts',
    from: "after: { retry: { guard: 'renewsItself', target: 'renewing' } },",
    to: "after: { retry: { guard: 'isReleaseAsked', target: 'renewing' } },",
  },
  {
    name: 'the result of the work hides a loss',
    property: 'C9',
    file: 'src/manager/hold.ts',
    from: '  if (loss !== null) {',
    to: "  if (loss !== null && 'workError' in outcome) {",
  },
  {
    name: 'a failing release hides what the work gave',
    property: 'C9',
    file: 'src/manager/hold.ts',
    from: 'await lease.release().catch(() => undefined);',
    to: 'await lease.release();',
  },
  {
    name: 'a release does not wait for the renewal on its way',
    property: 'C10',
    file: 'machines/keeper.machine.ts',
    from: "release: { actions: 'askRelease', description: 'Waits for the renewal on its way.' },",
    to: "release: { target: '#keeper.releasing', description: 'Waits for the renewal on its way.' },",
    tests: ['test/manager/releasing.test.ts'],
    titled: 'C10',
  },
  {
    name: 'closing releases while the work runs',
    property: 'C10',
    file: 'src/manager/tenures.ts',
    from: '  if (work !== null) await work;\n',
    to: '  void work;\n',
  },
  {
    name: 'a release is tried for ever',
    property: 'C10',
    file: 'src/manager/give-back.ts',
    from: 'if (!retryable || clock.monotonicSeconds() + wait >= until)',
    to: 'if (!retryable)',
  },
  {
    name: 'an abort waits for the answer, and its reason is not what comes out',
    property: 'C12',
    file: 'src/manager/tenures.ts',
    from: '        reject(reason);\n        tenure.keeper.send',
    to: '        tenure.keeper.send',
  },
  {
    name: 'an abort that came before does not count',
    property: 'C12',
    file: 'src/manager/lease-manager.ts',
    from: '    signal?.throwIfAborted();\n',
    to: '',
  },
  {
    name: 'what was granted to nobody is not given back',
    property: 'C12',
    file: 'src/manager/keeper-actors.ts',
    from: '      await giveBack(store, clock, { runId, workerId, acquisitionId }, times);\n',
    to: '      void [runId, workerId, times];\n',
  },
  {
    name: 'a grant that comes after its withdrawal stays',
    property: 'C12',
    file: 'src/manager/late-grants.ts',
    from: 'if (acquisition !== undefined) acquisition.refused = true;',
    to: 'if (acquisition !== undefined) acquisition.refused = false;',
  },
  {
    name: 'a listener stays on the signal of the caller',
    property: 'C14',
    file: 'src/manager/tenures.ts',
    from: "        signal?.removeEventListener('abort', aborted);\n",
    to: '',
  },
  {
    name: 'the timer of a request stays',
    property: 'C14',
    file: 'src/manager/request.ts',
    from: '      waiting = false;\n      timer.cancel();',
    to: '      waiting = false;',
  },
  {
    name: 'the watch for suspensions goes on without leases',
    property: 'C14',
    file: 'src/manager/tenures.ts',
    from: '    if (this.#held === 0) this.#watch.stop();\n',
    to: '',
  },
  {
    name: 'a renewal on its way outlives its lease',
    property: 'C14',
    file: 'src/manager/renewals.ts',
    from: 'if (left === 0) stop();',
    to: 'if (left < 0) stop();',
  },
]);

/** One test shows C1 to C14. Its broken managers are no matter here. */
function of(table) {
  return table.map((mutant) => ({ tests: TESTS, titled: 'whatever comes first', ...mutant }));
}
