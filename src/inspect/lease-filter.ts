/** Chooses what an inspector gets to see of many leases. */
import type { ActorRefLike, InspectionEvent } from 'xstate';

type Untied<Event> = Event extends InspectionEvent ? Omit<Event, 'rootId'> : never;

/** An inspection event, also one that xstate has made no record of yet. */
export type Inspected = Untied<InspectionEvent>;

/** Which runs are shown, and how many of them. */
export interface LeaseChoice {
  readonly only: (runId: string) => boolean;
  readonly limit: number;
}

/** Shows the events of the chosen runs' lease and keeper actors, the registry's calls that reach one, and all else. */
export class LeaseFilter<Event extends Inspected> {
  readonly choice: LeaseChoice;
  readonly #show: (event: Event) => void;
  /** The actors that are shown, while they live, with their runs. */
  readonly #chosen = new Map<ActorRefLike, string>();
  /** So many of them each run has. */
  readonly #runs = new Map<string, number>();
  /** A call of the registry, until a chosen lease is seen to take part in it. */
  #call: Event | null = null;
  #callShown = true;

  constructor(choice: LeaseChoice, show: (event: Event) => void) {
    this.choice = choice;
    this.#show = show;
  }

  /** Whether an actor of that run would be shown, were it to start now. */
  wants(runId: string): boolean {
    return this.#runs.has(runId) || (this.#runs.size < this.choice.limit && this.choice.only(runId));
  }

  take(event: Event): void {
    const { actorRef } = event;
    const kind = kindOf(actorRef);
    if (kind === 'registry') return this.#takeRegistry(event);
    const owner = kind === 'lease' ? actorRef : keeperOf(actorRef);
    if (owner === null) return this.#show(event);
    if (!this.#chosen.has(owner) && !(owner === actorRef && this.#choose(event))) return;
    if (kind === 'lease') this.#showCall();
    this.#show(event);
    if (owner === actorRef && event.type === '@xstate.snapshot' && event.snapshot.status !== 'active') {
      this.#forget(owner);
    }
  }

  #takeRegistry(event: Event): void {
    if (event.type === '@xstate.event' && isCall(event.event.type)) {
      this.#call = event;
      this.#callShown = false;
    } else if (this.#callShown || event.type === '@xstate.actor') {
      this.#show(event);
    }
  }

  #showCall(): void {
    if (this.#call) this.#show(this.#call);
    this.#call = null;
    this.#callShown = true;
  }

  #choose({ type, actorRef }: Event): boolean {
    if (type !== '@xstate.actor') return false;
    const runId = idOf(actorRef);
    if (!this.wants(runId)) return false;
    this.#chosen.set(actorRef, runId);
    this.#runs.set(runId, (this.#runs.get(runId) ?? 0) + 1);
    return true;
  }

  #forget(actorRef: ActorRefLike): void {
    const runId = this.#chosen.get(actorRef)!;
    this.#chosen.delete(actorRef);
    const others = this.#runs.get(runId)! - 1;
    if (others > 0) this.#runs.set(runId, others);
    else this.#runs.delete(runId);
  }
}

/** xstate gives the whole actor, and types only a little of it. */
interface WholeActor {
  readonly id: string;
  readonly logic?: { readonly config?: { readonly id?: string } };
  readonly _parent?: ActorRefLike;
}

function kindOf(actor: ActorRefLike): string | undefined {
  return (actor as unknown as WholeActor).logic?.config?.id;
}

/** The keeper itself, or the one that this actor works for, or null. */
function keeperOf(actor: ActorRefLike): ActorRefLike | null {
  for (let one: ActorRefLike | undefined = actor; one; one = (one as unknown as WholeActor)._parent) {
    if (kindOf(one) === 'keeper') return one;
  }
  return null;
}

/** Leases and keepers have the id of their run. */
function idOf(actor: ActorRefLike): string {
  return (actor as unknown as WholeActor).id;
}

/** One of the registry's calls, and no event of xstate's own. */
function isCall(type: string): boolean {
  return type.startsWith('lease.');
}
