import type { Actor, ActorLogic, ActorOptions } from 'xstate';
import { createActor } from 'xstate';
import type { RegistryAnswer, RegistryEvent } from './registry.events.ts';
import type { RegistryInput, RegistrySnapshot } from './registry.logic.ts';
import type { RegistryRuns } from './registry.runs.ts';

type Logic = ActorLogic<RegistrySnapshot, RegistryEvent, RegistryInput>;
type Options = ActorOptions<Logic> & { readonly input: RegistryInput };

/** Where a mailbox of xstate keeps the event that its actor is at. */
const CURRENT = '_current';

/** A registry's actor as somebody asks it who has checked his call: one event in, its own answer out. */
export class RegistryCaller {
  readonly actor: Actor<Logic>;
  /** The call that is on its way to the actor. */
  #asked: RegistryEvent | null = null;
  /** What the latest call was answered. Others may have sent events since, so the actor's own snapshot need not tell. */
  #answer: RegistryAnswer | undefined;
  /** Calls that found the actor at work and wait in its mailbox. Their callers were told that they failed. */
  readonly #withdrawn = new WeakSet<RegistryEvent>();

  /**
   * The actor still has to be started.
   *
   * @param others - the step for what others send to the actor, which nobody has checked. @default it changes nothing
   */
  constructor(logic: Logic, options: Options, others: Logic['transition'] = stepOnlyToStop(logic)) {
    this.actor = createActor(this.#answering(logic, others), options);
    // Without an observer xstate would throw an actor's error from a timer.
    this.actor.subscribe({ error: () => undefined });
  }

  get runs(): RegistryRuns {
    return this.actor.getSnapshot().runs;
  }

  /** @throws Error from within the actor's own step, where there is no answer yet, and once the actor has stopped or failed. */
  ask(event: RegistryEvent): RegistryAnswer {
    if (this.#asked !== null || isAtWork(this.actor)) throw calledFromWithin();
    if (this.actor.getSnapshot().status !== 'active') throw ended(this.actor.getSnapshot());
    this.#asked = event;
    this.actor.send(event);
    if (this.#asked !== null) {
      this.#asked = null;
      this.#withdrawn.add(event);
      throw calledFromWithin();
    }
    if (this.#answer === undefined) throw ended(this.actor.getSnapshot());
    return this.#answer;
  }

  #answering(logic: Logic, others: Logic['transition']): Logic {
    return {
      ...logic,
      transition: (snapshot, event, scope) => {
        if (event === this.#asked) {
          this.#asked = null;
          this.#answer = undefined;
          const next = logic.transition(snapshot, event, scope);
          this.#answer = next.answer;
          return next;
        }
        return this.#withdrawn.has(event) ? snapshot : others(snapshot, event, scope);
      },
    };
  }
}

function stepOnlyToStop({ transition }: Logic): Logic['transition'] {
  return (snapshot, event, scope) =>
    (event as { readonly type: string }).type === 'xstate.stop' ? transition(snapshot, event, scope) : snapshot;
}

/**
 * Whether the actor is inside a step: what is sent to it now waits in its mailbox. The members that this looks at are xstate's
 * own; where they are gone, such a call is found out by its missing answer, and withdrawn.
 */
function isAtWork(actor: object): boolean {
  const { mailbox } = actor as { readonly mailbox?: { readonly [CURRENT]?: object | null } };
  return (mailbox?.[CURRENT] ?? null) !== null;
}

function calledFromWithin(): Error {
  return new Error('A subscriber or inspector of its own actors called the registry. Listeners of `on` may do that');
}

function ended({ status, error }: RegistrySnapshot): Error {
  return status === 'error'
    ? new Error('The registry failed', { cause: error })
    : new Error('The registry was stopped');
}
