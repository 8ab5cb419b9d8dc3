import type { Actor } from 'xstate';
import { createActor } from 'xstate';
import type { RegistryAnswer, RegistryEvent, RegistryRecord } from '../../machines/registry.events.ts';
import type { RegistryInput } from '../../machines/registry.logic.ts';
import { persistedRegistry, registryLogic as unchecked } from '../../machines/registry.logic.ts';
import type { RegistryRuns } from '../../machines/registry.runs.ts';
import { filterAhead, wantsRun } from '../inspect/inspect-leases.ts';
import type { Inspector } from '../inspect/quiet-inspector.ts';
import { quietInspector } from '../inspect/quiet-inspector.ts';
import { registryLogic } from './registry-actor.ts';

/** Where a mailbox of xstate keeps the event that its actor is at. */
const CURRENT = '_current';

export interface RegistryCallerOptions extends Pick<RegistryInput, 'ttlSeconds' | 'reacquire'> {
  readonly inspect: Inspector | undefined;
  /** Of an earlier registry, to go on from. */
  readonly record: RegistryRecord | undefined;
}

/** A registry's actor as somebody asks it who has checked his call: one event in, its own answer out. */
export class RegistryCaller {
  readonly actor: Actor<typeof unchecked>;
  /** The call that is on its way to the actor. */
  #asked: RegistryEvent | null = null;
  /** Calls that found the actor at work and wait in its mailbox. Their callers were told that they failed. */
  readonly #withdrawn = new WeakSet<RegistryEvent>();

  constructor({ ttlSeconds, reacquire, inspect, record }: RegistryCallerOptions) {
    const watched = (runId: string): boolean => inspect !== undefined && wantsRun(inspect, runId);
    this.actor = createActor(this.#logic(), {
      id: 'registry',
      input: { ttlSeconds, reacquire, watched },
      ...(record && { snapshot: persistedRegistry(record, watched) }),
      ...(inspect && { inspect: quietInspector(inspect) }),
    });
    if (inspect) filterAhead(this.actor, inspect);
    // Without an observer xstate would throw an actor's error from a timer.
    this.actor.subscribe({ error: () => undefined });
    this.actor.start();
  }

  get runs(): RegistryRuns {
    return this.actor.getSnapshot().runs;
  }

  /** @throws Error from within the actor's own step, where there is no answer yet, and once the actor was stopped. */
  ask(event: RegistryEvent): RegistryAnswer {
    if (this.#asked !== null || isAtWork(this.actor)) throw calledFromWithin();
    if (this.actor.getSnapshot().status !== 'active') throw new Error('The registry was stopped');
    this.#asked = event;
    this.actor.send(event);
    if (this.#asked !== null) {
      this.#asked = null;
      this.#withdrawn.add(event);
      throw calledFromWithin();
    }
    return this.actor.getSnapshot().answer!;
  }

  /** What others send to the actor is checked, since nobody has done so. */
  #logic(): typeof unchecked {
    return {
      ...unchecked,
      transition: (snapshot, event, scope) => {
        if (event === this.#asked) {
          this.#asked = null;
          return unchecked.transition(snapshot, event, scope);
        }
        return this.#withdrawn.has(event) ? snapshot : registryLogic.transition(snapshot, event, scope);
      },
    };
  }
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
