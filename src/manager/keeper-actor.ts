import { fromPromise } from 'xstate';
import { keeperMachine } from '../../machines/keeper.machine.ts';
import type { AskAnswer, KeeperContext, ReleaseAnswer, RenewAnswer } from '../../machines/keeper.types.ts';
import type { KeeperActors, KeeperDelays } from './keeper-actors.ts';
import type { OnStop } from './request.ts';

/** The keeper machine with its actors and delays, to be run by xstate itself, where somebody inspects. */
export function provideKeeper(actors: KeeperActors, delays: KeeperDelays) {
  return keeperMachine.provide({
    actors: {
      ask: fromPromise<AskAnswer, KeeperContext>(({ input, signal }) => actors.ask(input, stopOf(signal))),
      wakeUp: fromPromise<void, KeeperContext>(({ input, signal }) => actors.wakeUp(input, stopOf(signal))),
      renew: fromPromise<RenewAnswer, KeeperContext>(({ input, signal }) => actors.renew(input, stopOf(signal))),
      release: fromPromise<ReleaseAnswer, KeeperContext>(({ input }) => actors.release(input)),
      withdraw: fromPromise<void, KeeperContext>(({ input }) => actors.withdraw(input)),
    },
    delays: {
      poll: ({ context }) => delays.poll(context),
      deadline: ({ context }) => delays.deadline(context),
      renewal: ({ context }) => delays.renewal(context),
      retry: ({ context }) => delays.retry(context),
    },
  });
}

function stopOf(signal: AbortSignal): OnStop {
  return (stop) => signal.addEventListener('abort', stop, { once: true });
}
