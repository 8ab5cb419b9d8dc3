/**
 * A worker's side of one lease: asking for the run, holding it while work goes on, giving it back. It names the actors that
 * it needs and provides none. Its delays stand in for those that go by a clock. `provideKeeper` in `src/manager` brings both.
 *
 * The deadline sits on `holding`, above a renewal in flight, so that one which hangs cannot outlive the lease. A good
 * renewal enters `holding` anew, which arms the next deadline.
 */
import { assign, emit, fromPromise, setup } from 'xstate';
import { keeperContext, keeperGuards as guards, keeperUpdates as updates } from './keeper.rules.ts';
import type {
  AskAnswer,
  KeeperContext,
  KeeperEvent,
  KeeperInput,
  KeeperNews,
  ReleaseAnswer,
  RenewAnswer,
} from './keeper.types.ts';

/** Stands for an actor that the manager provides. */
function provided<Answer>() {
  return fromPromise<Answer, KeeperContext>(() => Promise.reject(new Error('This actor must be provided')));
}

/** The chart of a worker’s side of one lease: acquiring, holding, releasing, and how it may end. */
export const keeperMachine = setup({
  types: {
    context: {} as KeeperContext,
    events: {} as KeeperEvent,
    emitted: {} as KeeperNews,
    input: {} as KeeperInput | undefined,
  },
  actors: {
    ask: provided<AskAnswer>(),
    wakeUp: provided<void>(),
    renew: provided<RenewAnswer>(),
    release: provided<ReleaseAnswer>(),
    withdraw: provided<void>(),
  },
  delays: {
    poll: () => 1000,
    deadline: ({ context }) => (context.times.ttlSeconds - context.times.marginSeconds) * 1000,
    renewal: ({ context }) => context.times.renewSeconds * 1000,
    retry: () => 1000,
  },
  guards: {
    isGranted: ({ context, event }) => guards.isGranted(context, event),
    isHeld: ({ context, event }) => guards.isHeld(context, event),
    mayAskAgain: ({ context, event }) => guards.mayAskAgain(context, event),
    mayBeGranted: ({ context, event }) => guards.mayBeGranted(context, event),
    isRenewed: ({ context, event }) => guards.isRenewed(context, event),
    isFailed: ({ context, event }) => guards.isFailed(context, event),
    isUnanswered: ({ context }) => guards.isUnanswered(context),
    hasHolder: ({ context }) => guards.hasHolder(context),
    renewsItself: ({ context }) => guards.renewsItself(context),
    isReleaseAsked: ({ context }) => guards.isReleaseAsked(context),
  },
  actions: {
    keepLease: assign(({ context, event }) => updates.keepLease(context, event)),
    keepRefusal: assign(({ context, event }) => updates.keepRefusal(context, event)),
    countFromSending: assign(({ context, event }) => updates.countFromSending(context, event)),
    keepFailure: assign(({ context, event }) => updates.keepFailure(context, event)),
    keepReason: assign(({ context, event }) => updates.keepReason(context, event)),
    keepRelease: assign(({ context, event }) => updates.keepRelease(context, event)),
    countAsk: assign(({ context }) => updates.countAsk(context)),
    keepExpiry: assign(() => updates.keepExpiry()),
    askRelease: assign(() => updates.askRelease()),
    tellGranted: emit({ type: 'granted' }),
    tellRenewed: emit({ type: 'renewed' }),
    tellUncertain: emit({ type: 'uncertain' }),
    tellLost: emit({ type: 'lost' }),
    tellReleased: emit({ type: 'released' }),
    tellRefused: emit({ type: 'refused' }),
    tellFailed: emit({ type: 'failed' }),
  },
}).createMachine({
  id: 'keeper',
  description: "A worker's side of one lease.",
  context: ({ input }) => keeperContext(input),
  initial: 'acquiring',
  states: {
    acquiring: {
      description: 'The worker has nothing yet. Only an answer of the store is a grant.',
      initial: 'trying',
      states: {
        trying: {
          description: 'One ask is on its way. Every ask has the same acquisition id.',
          entry: 'countAsk',
          invoke: {
            id: 'ask',
            src: 'ask',
            input: ({ context }) => context,
            onDone: [
              {
                guard: 'isGranted',
                target: '#keeper.holding',
                actions: ['keepLease', 'tellGranted'],
                description: 'Granted, and in time.',
              },
              {
                guard: 'mayAskAgain',
                target: 'waiting',
                actions: 'keepRefusal',
                description: 'Held, or no answer, and there is time left.',
              },
              {
                guard: 'mayBeGranted',
                target: '#keeper.withdrawing',
                actions: 'keepRefusal',
                description: 'Giving up, but an ask without an answer may have been granted.',
              },
              { guard: 'isHeld', target: '#keeper.refused', actions: 'keepRefusal', description: 'Held to the end.' },
              { target: '#keeper.failed', actions: 'keepRefusal', description: 'Nothing was applied.' },
            ],
          },
          on: {
            cancel: { target: '#keeper.withdrawing', description: 'The caller gives up while an ask is on its way.' },
          },
        },
        waiting: {
          description: 'Until the next poll, a wake-up, or the end of the wait: then the store is asked once more.',
          invoke: {
            id: 'wakeUp',
            src: 'wakeUp',
            input: ({ context }) => context,
            onDone: { target: 'trying', description: 'The run may have changed: a hint, no grant.' },
          },
          after: { poll: { target: 'trying' } },
          on: {
            cancel: [
              {
                guard: 'isUnanswered',
                target: '#keeper.withdrawing',
                description: 'An ask without an answer may have been granted.',
              },
              { target: '#keeper.failed', description: 'The caller gives up.' },
            ],
          },
        },
      },
    },
    holding: {
      description: 'The worker may believe, until its deadline. Every good renewal enters here anew.',
      initial: 'resting',
      after: {
        deadline: [
          { guard: 'isReleaseAsked', target: 'releasing' },
          {
            target: 'lost',
            actions: ['keepExpiry', 'tellLost'],
            description: 'Whatever a renewal is doing.',
          },
        ],
      },
      on: {
        expire: [
          { guard: 'isReleaseAsked', target: 'releasing' },
          {
            target: 'lost',
            actions: ['keepExpiry', 'tellLost'],
            description: 'Somebody looked at the clock: the deadline has passed.',
          },
        ],
      },
      states: {
        resting: {
          description: 'Nothing is on its way.',
          after: { renewal: { guard: 'renewsItself', target: 'renewing' } },
          on: { renew: { target: 'renewing' }, release: { target: '#keeper.releasing' } },
        },
        renewing: {
          description: 'One renewal is on its way. It looks at the deadline before it sends.',
          invoke: {
            id: 'renew',
            src: 'renew',
            input: ({ context }) => context,
            onDone: [
              {
                guard: 'isReleaseAsked',
                target: '#keeper.releasing',
                actions: 'countFromSending',
                description: 'The release waited for it.',
              },
              {
                guard: 'isRenewed',
                target: '#keeper.holding',
                actions: ['countFromSending', 'tellRenewed'],
                description: 'The deadline counts from its sending.',
              },
              {
                guard: 'isFailed',
                target: 'uncertain',
                actions: ['keepFailure', 'tellUncertain'],
                description: 'No answer, or the store is unavailable: no loss yet, and the deadline stays.',
              },
              {
                target: '#keeper.lost',
                actions: ['keepReason', 'tellLost'],
                description: 'Refused, or too late: final.',
              },
            ],
          },
          on: {
            release: { actions: 'askRelease', description: 'Waits for the renewal on its way.' },
          },
        },
        uncertain: {
          description: 'The last renewal failed. The next one follows a little later, until the deadline.',
          after: { retry: { guard: 'renewsItself', target: 'renewing' } },
          on: { renew: { target: 'renewing' }, release: { target: '#keeper.releasing' } },
        },
      },
    },
    releasing: {
      description: 'The run is given back, in a few attempts within a bound of their own.',
      invoke: {
        id: 'release',
        src: 'release',
        input: ({ context }) => context,
        onDone: { target: 'released', actions: ['keepRelease', 'tellReleased'] },
      },
    },
    withdrawing: {
      description: 'Takes back what may have been granted, by the acquisition id alone.',
      invoke: {
        id: 'withdraw',
        src: 'withdraw',
        input: ({ context }) => context,
        onDone: [{ guard: 'hasHolder', target: 'refused' }, { target: 'failed' }],
      },
    },
    released: { type: 'final', description: 'Given back by its worker.' },
    lost: { type: 'final', description: 'Ended by the deadline or by the store. Nothing revives it.' },
    refused: {
      type: 'final',
      entry: 'tellRefused',
      description: 'Another worker has the run. There never was a lease.',
    },
    failed: {
      type: 'final',
      entry: 'tellFailed',
      description: 'The store could not be asked, or the caller gave up. There never was a lease.',
    },
  },
});
