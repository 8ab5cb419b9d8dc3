import type { KeeperAction, KeeperNode, KeeperRow } from '../../machines/keeper.table.ts';
import { keeperStart } from '../../machines/keeper.table.ts';
import type { KeeperStep } from '../../machines/keeper.rules.ts';
import { keeperContext } from '../../machines/keeper.rules.ts';
import type { KeeperContext, KeeperEvent, KeeperInput, KeeperNews } from '../../machines/keeper.types.ts';
import type { ActorClock } from './actor-clock.ts';
import type { KeeperActors, KeeperDelays } from './keeper-actors.ts';

export interface KeeperRunOptions {
  readonly actors: KeeperActors;
  readonly delays: KeeperDelays;
  readonly clock: ActorClock;
  readonly tell: (news: KeeperNews['type']) => void;
  /** Gets an error of the run itself, which ends it. */
  readonly onBroken: (error: unknown) => void;
}

/** A state while it is active, with what ends when it is left. */
interface Active {
  readonly node: KeeperNode;
  readonly stops: (() => void)[];
  isLeft: boolean;
}

interface Queued {
  readonly step: KeeperStep;
  /** Whose timer or actor it comes from, with the transitions of that. Once the state was left it counts no more. */
  readonly from: Active | null;
  readonly rows: readonly KeeperRow[];
}

/** The keeper chart at work: one event at a time, to its end, and what follows from it afterwards. */
export class KeeperRun {
  context: KeeperContext;
  readonly #options: KeeperRunOptions;
  /** The outermost first. */
  #active: Active[] = [];
  #queue: Queued[] = [];
  /** What starts or is told once the step has been taken. */
  #afterwards: (() => void)[] = [];
  #busy = false;

  constructor(input: KeeperInput, options: KeeperRunOptions) {
    this.context = keeperContext(input);
    this.#options = options;
  }

  start(): void {
    this.#take({ guard: undefined, actions: [], keeps: 0, enters: keeperStart }, { type: 'start' });
    this.#settle();
  }

  send(event: KeeperEvent): void {
    this.#enqueue({ step: event, from: null, rows: [] });
  }

  /** Where the run is in the chart, the innermost state, for tests. */
  get path(): string {
    return this.#active.at(-1)?.node.path.join('.') ?? '';
  }

  #enqueue(queued: Queued): void {
    this.#queue.push(queued);
    if (!this.#busy) this.#settle();
  }

  #settle(): void {
    this.#busy = true;
    try {
      for (;;) {
        const next = this.#afterwards.shift();
        if (next !== undefined) next();
        else if (!this.#handle(this.#queue.shift())) break;
      }
    } catch (error) {
      this.#break(error);
    } finally {
      this.#busy = false;
    }
  }

  /** Takes the first transition whose guard allows it, the innermost state's before its parent's. False: nothing is left. */
  #handle(queued: Queued | undefined): boolean {
    if (queued === undefined) return false;
    const { step, from, rows } = queued;
    if (from?.isLeft) return true;
    const candidates = from === null ? this.#active.toReversed().flatMap(({ node }) => node.on[step.type] ?? []) : rows;
    const row = candidates.find(({ guard }) => guard === undefined || guard(this.context, step));
    if (row !== undefined) this.#take(row, step);
    return true;
  }

  #take({ actions, keeps, enters }: KeeperRow, step: KeeperStep): void {
    if (enters.length > 0) this.#leave(keeps);
    this.#act(actions, step);
    for (const node of enters) this.#enter(node, step);
  }

  #leave(keeps: number): void {
    for (const state of this.#active.splice(keeps).toReversed()) {
      state.isLeft = true;
      for (const stop of state.stops) stop();
    }
  }

  #enter(node: KeeperNode, step: KeeperStep): void {
    const state: Active = { node, stops: [], isLeft: false };
    this.#active.push(state);
    this.#act(node.entry, step);
    for (const { delay, rows } of node.after) {
      const { clock, delays } = this.#options;
      const elapsed = { step: { type: `after ${delay}` }, from: state, rows };
      const timer = clock.setTimeout(() => this.#enqueue(elapsed), delays[delay](this.context));
      state.stops.push(() => clock.clearTimeout(timer));
    }
    if (node.invoke !== null) this.#afterwards.push(() => this.#invoke(state, node.invoke!));
  }

  #invoke(state: Active, { src, onDone }: NonNullable<KeeperNode['invoke']>): void {
    if (state.isLeft) return;
    const onStop = (stop: () => void): void => void state.stops.push(stop);
    this.#options.actors[src](this.context, onStop).then(
      (output) => this.#enqueue({ step: { type: `${src} done`, output }, from: state, rows: onDone }),
      (error: unknown) => this.#break(error),
    );
  }

  #act(actions: readonly KeeperAction[], step: KeeperStep): void {
    for (const action of actions) {
      if (typeof action === 'string') this.#afterwards.push(() => this.#options.tell(action));
      else this.context = { ...this.context, ...action(this.context, step) };
    }
  }

  #break(error: unknown): void {
    this.#leave(0);
    this.#queue = [];
    this.#afterwards = [];
    this.#options.onBroken(error);
  }
}
