import type { RunChange } from './store.ts';

/** Tells those who watch runs that one may have changed. Many changes between two looks are one: only the store's answer counts. */
export class RunChanges {
  readonly #watches = new Set<Watch>();

  /** The runs that change from this call on, until the signal aborts. */
  of(runIds: readonly string[], signal: AbortSignal): AsyncIterableIterator<RunChange> {
    const watch = new Watch(runIds);
    this.#watches.add(watch);
    return this.#follow(watch, signal);
  }

  async *#follow(watch: Watch, signal: AbortSignal): AsyncIterableIterator<RunChange> {
    const end = () => watch.end();
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
    try {
      while (!watch.ended) {
        for (const runId of watch.take()) yield { runId };
        await watch.next();
      }
    } finally {
      signal.removeEventListener('abort', end);
      this.#watches.delete(watch);
    }
  }

  tell(runId: string): void {
    for (const watch of this.#watches) watch.tell(runId);
  }

  close(): void {
    for (const watch of this.#watches) watch.end();
  }
}

class Watch {
  ended = false;
  readonly #runIds: ReadonlySet<string>;
  readonly #changed = new Set<string>();
  #wake: () => void = () => undefined;

  constructor(runIds: readonly string[]) {
    this.#runIds = new Set(runIds);
  }

  tell(runId: string): void {
    if (!this.#runIds.has(runId)) return;
    this.#changed.add(runId);
    this.#wake();
  }

  end(): void {
    this.ended = true;
    this.#wake();
  }

  take(): string[] {
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }

  /** Settles when something changed or the watch ended, also before the call. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (this.ended || this.#changed.size > 0) resolve();
    });
  }
}
