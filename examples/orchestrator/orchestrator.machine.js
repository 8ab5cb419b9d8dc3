/**
 * The orchestrator: hands waiting jobs to idle workers until all are done, then waits for workers that were stopped, so
 * that their late writes are seen to be refused.
 */
import { assign, enqueueActions, sendTo, setup } from 'xstate';
import { jobMachine } from './job.machine.js';

const without = (list, item) => list.filter((other) => other !== item);

/** `crew` runs the workers, `leases` tells of leases that have expired. */
export function createOrchestrator({ crew, leases }) {
  return setup({
    actors: { job: jobMachine, crew, leases },
    actions: {
      openJobs: enqueueActions(({ context, enqueue }) => {
        const { jobIds, ttlSeconds } = context;
        for (const jobId of jobIds) enqueue.spawnChild('job', { id: jobId, input: { jobId, ttlSeconds } });
      }),
      handOut: enqueueActions(({ context, enqueue }) => {
        const { waiting, idle } = context;
        const count = Math.min(waiting.length, idle.length);
        for (let index = 0; index < count; index += 1) {
          const [jobId, workerId] = [waiting[index], idle[index]];
          enqueue.sendTo(jobId, { type: 'job.offer', workerId });
          enqueue.sendTo('crew', { type: 'assign', workerId, jobId });
        }
        enqueue.assign({ waiting: waiting.slice(count), idle: idle.slice(count) });
      }),
      passOn: sendTo(
        ({ event }) => event.jobId,
        ({ event }) => event,
      ),
      wakeAll: sendTo('crew', { type: 'wake' }),
      // A job that was tried before comes first: somebody may be waiting for it.
      addWaiting: assign({
        waiting: ({ context: { waiting }, event: { jobId, again } }) =>
          again ? [jobId, ...waiting] : [...waiting, jobId],
      }),
      dropWaiting: assign({ waiting: ({ context, event }) => without(context.waiting, event.jobId) }),
      addIdle: assign({ idle: ({ context, event }) => [...context.idle, event.workerId] }),
      dropIdle: assign({ idle: ({ context, event }) => without(context.idle, event.workerId) }),
      countDone: assign({ done: ({ context }) => context.done + 1 }),
      countTakeOver: assign({ takeOvers: ({ context }) => context.takeOvers + 1 }),
      countRefused: assign({ refused: ({ context }) => context.refused + 1 }),
    },
    guards: {
      hasJob: ({ event }) => event.jobId !== undefined,
      isAllDone: ({ context }) => context.done === context.jobIds.length,
      isAllIdle: ({ context }) => context.idle.length === context.workers,
    },
  }).createMachine({
    id: 'orchestrator',
    context: ({ input }) => ({ ...input, waiting: [], idle: [], done: 0, takeOvers: 0, refused: 0 }),
    entry: 'openJobs',
    invoke: [
      { id: 'crew', src: 'crew' },
      { id: 'leases', src: 'leases' },
    ],
    on: {
      'worker.idle': { actions: ['addIdle', 'handOut'] },
      'worker.gone': [{ guard: 'hasJob', actions: ['dropIdle', 'passOn'] }, { actions: 'dropIdle' }],
      'write.refused': { actions: 'countRefused' },
      'job.waiting': { actions: ['addWaiting', 'handOut'] },
      'job.started': { actions: ['dropWaiting', 'passOn'] },
      'job.done': { actions: ['dropWaiting', 'passOn'] },
      'job.left': { actions: 'passOn' },
      'lease.expired': { actions: 'passOn' },
      'job.takenOver': { actions: 'countTakeOver' },
      'job.finished': { actions: 'countDone' },
    },
    initial: 'working',
    states: {
      working: { always: { guard: 'isAllDone', target: 'settling' } },
      settling: { entry: 'wakeAll', always: { guard: 'isAllIdle', target: 'finished' } },
      finished: { type: 'final' },
    },
  });
}
