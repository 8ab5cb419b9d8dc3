import { createActor } from 'xstate';
import type { KeeperContext, KeeperEvent, KeeperInput, KeeperNews } from '../../machines/keeper.types.ts';
import { wantsRun } from '../inspect/inspect-leases.ts';
import type { Inspector } from '../inspect/quiet-inspector.ts';
import { quietInspector } from '../inspect/quiet-inspector.ts';
import type { ActorClock } from './actor-clock.ts';
import { provideKeeper } from './keeper-actor.ts';
import type { KeeperActors, KeeperDelays } from './keeper-actors.ts';
import { KeeperRun } from './keeper-run.ts';

/** The news of a keeper. `broken`: the keeper itself failed, which ends it like a loss. */
export type News = KeeperNews['type'] | 'broken';

export interface KeeperOptions {
  readonly actors: KeeperActors;
  readonly delays: KeeperDelays;
  readonly clock: ActorClock;
  /** Where somebody inspects, xstate itself runs the chart, with all its records. */
  readonly inspect: Inspector | undefined;
}

/** What runs the chart. */
interface Engine {
  readonly context: KeeperContext;
  start(): void;
  send(event: KeeperEvent): void;
}

/** A keeper at work: one acquire, and the lease that comes of it. */
export class Keeper {
  /** Who hears the news. Must not throw. */
  listener: (news: News) => void;
  /** Why it is broken. */
  error: unknown = null;
  readonly #engine: Engine;

  constructor(input: KeeperInput, options: KeeperOptions, listener: (news: News) => void) {
    this.listener = listener;
    const tell = (news: News): void => this.listener(news);
    const onBroken = (error: unknown): void => {
      this.error = error;
      this.listener('broken');
    };
    const { inspect, actors, delays, clock } = options;
    this.#engine =
      inspect === undefined || !wantsRun(inspect, input.runId)
        ? new KeeperRun(input, { actors, delays, clock, tell, onBroken })
        : inspected(input, { ...options, inspect }, tell, onBroken);
  }

  start(): void {
    this.#engine.start();
  }

  send(event: KeeperEvent): void {
    this.#engine.send(event);
  }

  get context(): KeeperContext {
    return this.#engine.context;
  }
}

function inspected(
  input: KeeperInput,
  { actors, delays, clock, inspect }: KeeperOptions & { readonly inspect: Inspector },
  tell: (news: News) => void,
  onBroken: (error: unknown) => void,
): Engine {
  const logic = provideKeeper(actors, delays);
  const actor = createActor(logic, { id: input.runId, input, clock, inspect: quietInspector(inspect) });
  actor.on('*', ({ type }) => tell(type));
  // Without an observer xstate throws its error from a timer, and the process ends.
  actor.subscribe({ error: onBroken });
  return {
    start: () => actor.start(),
    send: (event) => {
      if (actor.getSnapshot().status === 'active') actor.send(event);
    },
    get context() {
      return actor.getSnapshot().context;
    },
  };
}
