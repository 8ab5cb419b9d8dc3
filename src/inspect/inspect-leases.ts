import type { ActorRefLike, InspectionEvent } from 'xstate';
import { checkFunction, checkObject, rangeError } from '../options.ts';
import type { Inspector } from './quiet-inspector.ts';

/** Which leases an inspector sees. */
export interface InspectLeasesOptions {
  /** Which runs are shown. @default all */
  readonly only?: ((runId: string) => boolean) | undefined;
  /** So many runs are shown, the first that come. @default 50 */
  readonly limit?: number | undefined;
}

/**
 * The same inspector, with a filter before it, so that thousands of leases do not drown it: it sees the registry, the chosen
 * runs' lease actors, and of the registry's calls those that reached one of them.
 *
 * @throws TypeError or RangeError for options that make no sense.
 * @example
 * const { inspect } = createBrowserInspector();
 * const registry = new LeaseRegistry({ ttlSeconds: 10, inspect: inspectLeases(inspect, { only: (id) => id.startsWith('nightly') }) });
 */
export function inspectLeases(
  inspector: Inspector,
  options: InspectLeasesOptions = {},
): (event: InspectionEvent) => void {
  checkObject('options', options);
  const { only = () => true, limit = 50 } = options;
  checkFunction('only', only);
  if (!(Number.isSafeInteger(limit) && limit >= 1)) throw rangeError('limit', 'to be a whole number above 0', limit);
  const show = typeof inspector === 'function' ? inspector : (event: InspectionEvent) => inspector.next?.(event);
  const filter = new LeaseFilter(only, limit, show);
  return (event) => filter.take(event);
}

class LeaseFilter {
  readonly #only: (runId: string) => boolean;
  readonly #limit: number;
  readonly #show: (event: InspectionEvent) => void;
  readonly #chosen = new Set<ActorRefLike>();
  /** A call of the registry, until a chosen lease is seen to take part in it. */
  #call: InspectionEvent | null = null;
  #callShown = true;

  constructor(only: (runId: string) => boolean, limit: number, show: (event: InspectionEvent) => void) {
    this.#only = only;
    this.#limit = limit;
    this.#show = show;
  }

  take(event: InspectionEvent): void {
    const { actorRef } = event;
    if (isRegistry(actorRef)) this.#takeRegistry(event);
    else if (!isLease(actorRef)) this.#show(event);
    else if (this.#chosen.has(actorRef) || this.#choose(event)) this.#showLease(event);
  }

  #takeRegistry(event: InspectionEvent): void {
    if (event.type === '@xstate.event' && isCall(event.event.type)) {
      this.#call = event;
      this.#callShown = false;
    } else if (this.#callShown || event.type === '@xstate.actor') {
      this.#show(event);
    }
  }

  #choose({ type, actorRef }: InspectionEvent): boolean {
    if (type !== '@xstate.actor' || this.#chosen.size >= this.#limit || !this.#only(idOf(actorRef))) return false;
    this.#chosen.add(actorRef);
    return true;
  }

  #showLease(event: InspectionEvent): void {
    if (this.#call) this.#show(this.#call);
    this.#call = null;
    this.#callShown = true;
    this.#show(event);
    if (event.type === '@xstate.snapshot' && event.snapshot.status === 'stopped') this.#chosen.delete(event.actorRef);
  }
}

/** xstate gives the whole actor, and types only a little of it. */
function configId(actor: ActorRefLike): string | undefined {
  return (actor as { readonly logic?: { readonly config?: { readonly id?: string } } }).logic?.config?.id;
}

function isRegistry(actor: ActorRefLike): boolean {
  return configId(actor) === 'registry';
}

function isLease(actor: ActorRefLike): boolean {
  return configId(actor) === 'lease';
}

function idOf(actor: ActorRefLike): string {
  return (actor as unknown as { readonly id: string }).id;
}

/** One of the registry's calls, and no event of xstate's own. */
function isCall(type: string): boolean {
  return type.startsWith('lease.');
}
