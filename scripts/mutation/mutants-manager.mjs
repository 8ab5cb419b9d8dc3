/** Errors of the manager that take more than one hold to see. @type {readonly import('./mutant.mjs').Mutant[]} */
export const managerMutants = [
  ...of('test/manager/suspension.test.ts', [
    {
      name: 'no timer goes by the clock since boot',
      property: 'C2',
      file: 'src/manager/worker-deadline.ts',
      from: 'return byTimers - byBoot > BOOT_STEP_SECONDS ? byBoot : Infinity;',
      to: 'return byTimers - byBoot > Infinity ? byBoot : Infinity;',
    },
  ]),
  ...of('test/manager/renewing.test.ts', [
    {
      name: 'a batch without an answer is sent again as it was',
      property: 'C8',
      file: 'machines/keeper.rules.ts',
      from: 'company: answer.unknown ? Math.max(1, Math.floor(Math.sqrt(answer.shared))) : company,',
      to: 'company,',
    },
    {
      name: 'a renewal of one lease keeps the others of its turn waiting',
      property: 'C8',
      file: 'src/manager/renewals.ts',
      from: 'const size = Math.min(group[0]!.company, MAX_BATCH);',
      to: 'const size = 1;',
    },
  ]),
  ...of('test/manager/acquiring.test.ts', [
    {
      name: 'a run that is held here is asked for again',
      property: 'C11',
      file: 'src/manager/lease-manager.ts',
      from: 'if (holder !== null) throw new LeaseNotAvailableError',
      to: 'if (holder !== null && holder.fencingToken < 0) throw new LeaseNotAvailableError',
    },
    {
      name: 'without a wake-up a waiter never asks again',
      property: 'C13',
      file: 'machines/keeper.machine.ts',
      from: "after: { poll: { target: 'trying' } },",
      to: "after: { poll: { guard: 'isReleaseAsked', target: 'trying' } },",
    },
  ]),
  ...of('test/manager/processes.test.ts', [
    {
      name: "a listener's error ends the process",
      property: 'RN2',
      file: 'src/events.ts',
      from: '        reportListenerError(error, String(type));',
      to: '        throw error;',
      built: true,
    },
  ]),
  ...of('test/manager/long-times.test.ts', [
    {
      name: 'a long timer is armed whole',
      property: 'C15',
      file: 'src/manager/actor-clock.ts',
      from: 'return this.#clock.after(Math.min(seconds, MAX_TIMER_SECONDS), () => {',
      to: 'return this.#clock.after(Math.max(seconds, -MAX_TIMER_SECONDS), () => {',
    },
  ]),
  ...of('test/manager/settings.test.ts', [
    {
      name: 'one attempt to renew is enough',
      property: 'C17',
      file: 'src/manager/settings.ts',
      from: 'const MIN_ATTEMPTS = 2;',
      to: 'const MIN_ATTEMPTS = 1;',
    },
  ]),
];

/** Killed in that file, by the tests whose titles name the property. */
function of(test, table) {
  return table.map((mutant) => ({ tests: [test], titled: `\\b${mutant.property}\\b`, ...mutant }));
}
