/**
 * A worker's side of one lease: asking for the run, holding it while work goes on, giving it back. It names the actors and
 * the delays that it needs and provides none: `provideKeeper` in `src/manager` does.
 *
 * The deadline sits on `holding`, above a renewal in flight, so that one which hangs cannot outlive the lease. A good
 * renewal enters `holding` anew, which arms the next deadline.
 */
import { assign, emit, fromPromise, setup } from 'xstate';
import type {
  AskAnswer,
  KeeperContext,
  KeeperEvent,
  KeeperInput,
  KeeperNews,
  ReleaseAnswer,
  RenewAnswer,
} from './keeper.types.ts';

/** The answer that an actor's done event carries. */
function answerOf<Answer>(event: unknown): Answer {
  return (event as { readonly output: Answer }).output;
}

function ask(event: unknown): AskAnswer {
  return answerOf<AskAnswer>(event);
}

function renewal(event: unknown): RenewAnswer {
  return answerOf<RenewAnswer>(event);
}

/** Stands for an actor that the manager provides. */
function provided<Answer>() {
  return fromPromise<Answer, KeeperContext>(() => Promise.reject(new Error('This actor must be provided')));
}

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
    isGranted: ({ event }) => ask(event).status === 'granted',
    isHeld: ({ event }) => ask(event).status === 'held',
    mayAskAgain: ({ event }) => {
      const answer = ask(event);
      return answer.status !== 'granted' && !answer.waitOver;
    },
    mayBeGranted: ({ context, event }) => {
      const answer = ask(event);
      return context.unanswered || (answer.status === 'failed' && answer.unknown);
    },
    isUnanswered: ({ context }) => context.unanswered,
    hasHolder: ({ context }) => context.holder !== null,
    renewsItself: ({ context }) => context.autoRenew,
    isReleaseAsked: ({ context }) => context.releaseAsked,
    isRenewed: ({ event }) => renewal(event).status === 'renewed',
    isFailed: ({ event }) => renewal(event).status === 'failed',
  },
  actions: {
    countAsk: assign({ attempts: ({ context }) => context.attempts + 1 }),
    keepLease: assign(({ event }) => {
      const answer = ask(event);
      if (answer.status !== 'granted') return {};
      return { lease: answer.lease, deadline: answer.deadline, unanswered: false, holder: null, error: null };
    }),
    keepRefusal: assign(({ context, event }) => {
      const answer = ask(event);
      if (answer.status === 'held') return { holder: answer.holder, error: null };
      if (answer.status === 'failed') {
        return { holder: null, error: answer.error, unanswered: context.unanswered || answer.unknown };
      }
      return {};
    }),
    countFromSending: assign(({ event }) => {
      const answer = renewal(event);
      if (answer.status !== 'renewed') return {};
      return { deadline: answer.deadline, failures: 0, unanswered: false, error: null, company: null };
    }),
    keepFailure: assign(({ context, event }) => {
      const answer = renewal(event);
      if (answer.status !== 'failed') return {};
      return {
        failures: context.failures + 1,
        error: answer.error,
        unanswered: context.unanswered || answer.unknown,
        company: answer.unknown ? Math.max(1, Math.floor(Math.sqrt(answer.shared))) : context.company,
      };
    }),
    keepReason: assign(({ event }) => {
      const answer = renewal(event);
      return { reason: answer.status === 'lost' ? answer.reason : 'expired' };
    }),
    keepExpiry: assign({ reason: () => 'expired' as const }),
    askRelease: assign({ releaseAsked: () => true }),
    keepRelease: assign(({ event }) => {
      const { freed, error = null } = answerOf<ReleaseAnswer>(event);
      return { freed, error };
    }),
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
  context: ({ input }) => ({
    runId: input?.runId ?? '',
    workerId: input?.workerId ?? '',
    acquisitionId: input?.acquisitionId ?? '',
    reacquire: input?.reacquire,
    times: input?.times ?? {
      ttlSeconds: 30,
      renewSeconds: 10,
      requestTimeoutSeconds: 5,
      marginSeconds: 0.315,
      pollSeconds: 1,
      releaseTimeoutSeconds: 10,
    },
    autoRenew: input?.autoRenew ?? true,
    waitUntilSeconds: input?.waitUntilSeconds ?? null,
    attempts: 0,
    unanswered: false,
    holder: null,
    lease: null,
    deadline: null,
    failures: 0,
    error: null,
    company: null,
    releaseAsked: false,
    freed: false,
    reason: null,
  }),
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
