interface Registration {
  readonly listener: (event: never) => void;
}

/** Tells listeners what happened. A listener's error is reported as a process warning and stops nothing. */
export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, Set<Registration>>();

  /**
   * Calls the listener for every later event of that type, and returns how to stop that. A function that is registered
   * twice is called twice, and each registration ends by itself.
   */
  on<Type extends keyof Events>(type: Type, listener: (event: Events[Type]) => void): () => void {
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners);
    const registration = { listener };
    listeners.add(registration);
    return () => {
      listeners.delete(registration);
      if (listeners.size === 0 && this.#listeners.get(type) === listeners) this.#listeners.delete(type);
    };
  }

  emit<Type extends keyof Events>(type: Type, event: Events[Type]): void {
    const listeners = this.#listeners.get(type);
    if (listeners === undefined) return;
    for (const { listener } of [...listeners]) {
      try {
        (listener as (event: Events[Type]) => void)(event);
      } catch (error) {
        reportListenerError(error, String(type));
      }
    }
  }

  /** Whether anybody listens to anything. */
  get observed(): boolean {
    return this.#listeners.size > 0;
  }
}

/** A failing listener is its owner's fault and must stay visible, but must not end the process or another's lease. */
export function reportListenerError(error: unknown, what: string): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.emitWarning(`A listener of ${what} threw: ${text}`, 'LessorListenerWarning');
}
