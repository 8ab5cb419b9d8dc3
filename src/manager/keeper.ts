import { createActor } from 'xstate';
import type { KeeperContext, KeeperEvent, KeeperInput, KeeperNews } from '../../machines/keeper.types.ts';
import { quietInspector } from '../inspect/quiet-inspector.ts';
import type { Inspector } from '../inspect/quiet-inspector.ts';
import type { ActorClock } from './actor-clock.ts';
import type { provideKeeper } from './keeper-actors.ts';

/** The news of a keeper. `broken`: the machine itself failed, which ends it like a loss. */
export type News = KeeperNews['type'] | 'broken';

export interface KeeperOptions {
  readonly machine: ReturnType<typeof provideKeeper>;
  readonly clock: ActorClock;
  readonly inspect: Inspector | undefined;
}

/** A running keeper machine: one acquire, and the lease that comes of it. */
export class Keeper {
  /** Who hears the news. Must not throw. */
  listener: (news: News) => void;
  /** Why it is broken. */
  error: unknown = null;
  readonly #actor;

  constructor(input: KeeperInput, { machine, clock, inspect }: KeeperOptions, listener: (news: News) => void) {
    this.listener = listener;
    this.#actor = createActor(machine, { input, clock, ...(inspect && { inspect: quietInspector(inspect) }) });
    this.#actor.on('*', ({ type }) => this.listener(type));
    this.#actor.subscribe({
      // Without an observer xstate throws it from a timer, and the process ends.
      error: (error) => {
        this.error = error;
        this.listener('broken');
      },
    });
  }

  start(): void {
    this.#actor.start();
  }

  send(event: KeeperEvent): void {
    this.#actor.send(event);
  }

  get context(): KeeperContext {
    return this.#actor.getSnapshot().context;
  }
}
