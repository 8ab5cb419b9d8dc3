/** Messages that a run may have changed, over a connection of their own that is opened when somebody first asks. */
import { RunChanges } from '../run-changes.ts';
import type { RunChange } from '../store.ts';
import type { RedisConnection, RedisSubscriber } from './connection.ts';
import type { RedisKeys } from './keys.ts';

export class RedisChanges {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #changes = new RunChanges();
  /** By channel: the run and how many watch it. */
  readonly #watched = new Map<string, { readonly runId: string; count: number }>();
  #subscriber: RedisSubscriber | undefined;
  #closed = false;

  constructor(connection: RedisConnection, keys: RedisKeys) {
    this.#connection = connection;
    this.#keys = keys;
  }

  /** The first hint of a run comes when the server has begun to send them: what changed before it is not lost then. */
  async *of(runIds: readonly string[], signal: AbortSignal): AsyncIterableIterator<RunChange> {
    if (this.#closed || signal.aborted) return;
    const watched = new Set(runIds);
    const changes = this.#changes.of([...watched], signal);
    for (const runId of watched) this.#watch(runId);
    try {
      yield* changes;
    } finally {
      for (const runId of watched) this.#unwatch(runId);
    }
  }

  close(): void {
    this.#closed = true;
    this.#changes.close();
    this.#subscriber?.end();
  }

  #watch(runId: string): void {
    const channel = this.#keys.lease(runId);
    const watched = this.#watched.get(channel);
    if (watched) watched.count += 1;
    else this.#watched.set(channel, { runId, count: 1 });
    // Without messages a waiter costs its polls, so a failure here is not told.
    this.#open()
      .subscribe(channel)
      .then(() => this.#changes.tell(runId), ignore);
  }

  #unwatch(runId: string): void {
    const channel = this.#keys.lease(runId);
    const watched = this.#watched.get(channel)!;
    watched.count -= 1;
    if (watched.count > 0) return;
    this.#watched.delete(channel);
    if (!this.#closed) this.#subscriber?.unsubscribe(channel).catch(ignore);
  }

  #open(): RedisSubscriber {
    this.#subscriber ??= this.#connection.subscribe(
      (channel) => this.#tell(channel),
      // Messages were lost meanwhile.
      () => this.#watched.forEach(({ runId }) => this.#changes.tell(runId)),
    );
    return this.#subscriber;
  }

  #tell(channel: string): void {
    const watched = this.#watched.get(channel);
    if (watched) this.#changes.tell(watched.runId);
  }
}

function ignore(): void {}
