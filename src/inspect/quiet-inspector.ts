import type { InspectionEvent, Observer } from 'xstate';
import { reportListenerError } from '../events.ts';

/** Gets xstate's inspection events, e.g. the `inspect` of a Stately inspector. */
export type Inspector = Observer<InspectionEvent> | ((event: InspectionEvent) => void);

/** The same inspector, but one whose errors are reported and stop nothing: xstate lets them break the call they watch. */
export function quietInspector<Event = InspectionEvent>(
  inspector: Observer<Event> | ((event: Event) => void),
): (event: Event) => void {
  return (event) => {
    try {
      if (typeof inspector === 'function') inspector(event);
      else inspector.next?.(event);
    } catch (error) {
      reportListenerError(error, 'the inspection');
    }
  };
}
