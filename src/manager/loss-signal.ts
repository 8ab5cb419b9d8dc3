/** The signal of a lease: aborts when it is lost. A listener's error is reported as a warning and ends no process. */
import { reportListenerError } from '../events.ts';

type Listener = Parameters<AbortSignal['addEventListener']>[1];
type Options = Parameters<AbortSignal['addEventListener']>[2];
type Guarded = (event: Event) => void;

/**
 * A controller whose signal keeps its listeners' errors to itself. Node throws those as uncaught exceptions, from the
 * background: one careless listener would end a process and every other lease in it.
 */
export function lossController(): AbortController {
  const controller = new AbortController();
  const { signal } = controller;
  const guarded = new WeakMap<object, Guarded>();
  const { addEventListener, removeEventListener } = signal;
  const guard = (listener: Listener | null): Listener | null => {
    // None at all, or what Node itself refuses.
    if (listener === null || !['function', 'object'].includes(typeof listener)) return listener;
    let wrapped = guarded.get(listener);
    if (wrapped === undefined) guarded.set(listener, (wrapped = (event) => tell(signal, listener, event)));
    return wrapped;
  };
  Object.defineProperties(signal, {
    addEventListener: {
      value: (type: string, listener: Listener, options?: Options) =>
        addEventListener.call(signal, type, guard(listener)!, options),
    },
    removeEventListener: {
      value: (type: string, listener: Listener, options?: Options) =>
        removeEventListener.call(signal, type, guarded.get(listener) ?? listener, options),
    },
  });
  return controller;
}

/**
 * A signal that aborts with the first of these, with its reason, and guards its listeners like a lease's. `AbortSignal.any`
 * would not. `letGo` ends the following.
 */
export function firstOf(...signals: readonly AbortSignal[]): {
  readonly signal: AbortSignal;
  readonly letGo: () => void;
} {
  const controller = lossController();
  const follow = (): void => controller.abort(signals.find(({ aborted }) => aborted)?.reason);
  const letGo = (): void => {
    for (const signal of signals) signal.removeEventListener('abort', follow);
  };
  for (const signal of signals) signal.addEventListener('abort', follow);
  if (signals.some(({ aborted }) => aborted)) follow();
  return { signal: controller.signal, letGo };
}

function tell(signal: AbortSignal, listener: Listener, event: Event): void {
  try {
    if (typeof listener === 'function') listener.call(signal, event);
    else listener.handleEvent(event);
  } catch (error) {
    reportListenerError(error, "a lease's signal");
  }
}
