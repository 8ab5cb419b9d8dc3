/**
 * One job, as the orchestrator sees it. This chart decides who is asked to do the job, never whether a result counts:
 * that is up to the store, which takes a write only under the job's newest lease.
 */
import { assign, sendParent, setup } from 'xstate';

export const jobMachine = setup({
  actions: {
    askForWorker: sendParent(({ context }) => ({
      type: 'job.waiting',
      jobId: context.jobId,
      again: context.tries > 0,
    })),
    tellTakeOver: sendParent({ type: 'job.takenOver' }),
    tellFinished: sendParent({ type: 'job.finished' }),
    countTry: assign({ tries: ({ context }) => context.tries + 1, workerId: ({ event }) => event.workerId }),
    keepLease: assign({
      workerId: ({ event }) => event.workerId,
      fencingToken: ({ event }) => event.fencingToken,
      hasExpired: false,
    }),
    keepExpiry: assign({ hasExpired: true }),
  },
  guards: {
    isNewerLease: ({ context, event }) => event.fencingToken > context.fencingToken,
    isTakeOver: ({ context, event }) => context.hasExpired && event.fencingToken > context.fencingToken,
    isKnownLease: ({ context, event }) => event.fencingToken === context.fencingToken,
    isItsWorker: ({ context, event }) => event.workerId === context.workerId,
  },
  delays: {
    offerTimeout: ({ context }) => context.ttlSeconds * 3000,
    leaseTimeout: ({ context }) => context.ttlSeconds * 2000,
  },
}).createMachine({
  id: 'job',
  context: ({ input }) => ({ ...input, workerId: null, fencingToken: 0, hasExpired: false, tries: 0 }),
  initial: 'open',
  states: {
    open: {
      initial: 'waiting',
      on: {
        // Also from a worker that was given up: its write was accepted, so nobody had taken over.
        'job.done': { target: 'done' },
        'job.started': [
          { guard: 'isTakeOver', target: '.running', actions: ['keepLease', 'tellTakeOver'] },
          { guard: 'isNewerLease', target: '.running', actions: 'keepLease' },
        ],
      },
      states: {
        waiting: {
          entry: 'askForWorker',
          on: { 'job.offer': { target: 'offered', actions: 'countTry' } },
        },
        offered: {
          description: 'A worker was asked, and has not said that it has the lease.',
          on: {
            'job.left': { guard: 'isItsWorker', target: 'waiting' },
            'worker.gone': { guard: 'isItsWorker', target: 'waiting' },
          },
          after: { offerTimeout: { target: 'waiting' } },
        },
        running: {
          on: {
            'lease.expired': { guard: 'isKnownLease', target: 'waiting', actions: 'keepExpiry' },
            'job.left': { guard: 'isItsWorker', target: 'waiting' },
            'worker.gone': { guard: 'isItsWorker', target: 'orphaned' },
          },
        },
        orphaned: {
          description: 'The worker died. Nobody gets the job before its lease has run out.',
          on: { 'lease.expired': { guard: 'isKnownLease', target: 'waiting', actions: 'keepExpiry' } },
          after: { leaseTimeout: { target: 'waiting' } },
        },
      },
    },
    done: { entry: 'tellFinished' },
  },
});
