import type { InspectionEvent } from 'xstate';
import { reportListenerError } from '../events.ts';
import { checkFunction, checkObject, rangeError } from '../options.ts';
import type { Inspected } from './lease-filter.ts';
import { LeaseFilter } from './lease-filter.ts';
import type { Inspector } from './quiet-inspector.ts';
import { quietInspector } from './quiet-inspector.ts';

/** Which leases an inspector sees. */
export interface InspectLeasesOptions {
  /** Which runs are shown. @default all */
  readonly only?: ((runId: string) => boolean) | undefined;
  /** So many runs are shown, the first that come. @default 50 */
  readonly limit?: number | undefined;
}

/** Where xstate's own system makes its records. */
const RECORD = '_sendInspectionEvent';

const filters = new WeakMap<Inspector, LeaseFilter<InspectionEvent>>();

/**
 * The same inspector, with a filter before it, so that thousands of leases do not drown it: it sees the registry, the chosen
 * runs' lease and keeper actors, and of the registry's calls those that reached one of them.
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
  const filter = new LeaseFilter<InspectionEvent>({ only, limit }, show);
  const inspect = (event: InspectionEvent): void => filter.take(event);
  filters.set(inspect, filter);
  return inspect;
}

/** Whether the inspector wants to see the actors of that run, were one to start now. Its errors are reported, and are a no. */
export function wantsRun(inspector: Inspector, runId: string): boolean {
  try {
    return filters.get(inspector)?.wants(runId) ?? true;
  } catch (error) {
    reportListenerError(error, 'the inspection');
    return false;
  }
}

/**
 * Lets the filter of `inspectLeases` decide before xstate makes its record of an event, since making it costs more than a
 * call of the registry does. The member that this replaces is one of xstate's own: where it is gone, the filter behind it
 * still does the whole of the work, only later.
 */
export function filterAhead({ system }: { readonly system: object }, inspector: Inspector): void {
  const choice = filters.get(inspector)?.choice;
  const inner = system as { [RECORD]?: (event: Inspected) => void };
  const record = inner[RECORD];
  if (choice === undefined || record === undefined) return;
  const filter = new LeaseFilter<Inspected>(choice, record);
  inner[RECORD] = quietInspector((event: Inspected) => filter.take(event));
}
