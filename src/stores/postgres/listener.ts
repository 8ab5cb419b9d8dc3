import { RunChanges } from '../run-changes.ts';
import type { RunChange } from '../store.ts';
import { checkOut, giveBack, type PostgresClient, type PostgresNotification, type PostgresPool } from './client.ts';
import { channelName } from './functions.ts';

/** While somebody listens, PostgreSQL is told so for this long, and again at half of it. */
const LISTENED_SECONDS = 120;
const RECONNECT_SECONDS = [0.05, 0.2, 1, 5];

/**
 * Hears of changes on one connection of its own, kept while somebody waits. It reconnects by timers of its own:
 * what it tells is a hint, so a change that it missed costs a waiter one poll.
 */
export class PostgresListener {
  readonly #pool: PostgresPool;
  readonly #schema: string;
  readonly #changes = new RunChanges();
  readonly #watched = new Map<object, readonly string[]>();
  #client: PostgresClient | undefined;
  #timer: NodeJS.Timeout | undefined;
  #connecting = false;
  #failures = 0;
  #isDeaf: boolean;
  #closed = false;

  /** @param schema - quoted. */
  constructor(pool: PostgresPool, schema: string, { silent }: { readonly silent: boolean }) {
    this.#isDeaf = silent;
    this.#pool = pool;
    this.#schema = schema;
  }

  async *of(runIds: readonly string[], signal: AbortSignal): AsyncIterableIterator<RunChange> {
    const watch = {};
    const changes = this.#changes.of(runIds, signal);
    this.#watched.set(watch, runIds);
    void this.#connect();
    try {
      yield* changes;
    } finally {
      this.#watched.delete(watch);
      if (this.#watched.size === 0) this.#disconnect();
    }
  }

  close(): void {
    this.#closed = true;
    this.#changes.close();
    this.#disconnect();
  }

  get #isNeeded(): boolean {
    return !this.#closed && this.#watched.size > 0 && !this.#isDeaf;
  }

  async #connect(): Promise<void> {
    if (this.#client !== undefined || this.#connecting || !this.#isNeeded) return;
    this.#connecting = true;
    clearTimeout(this.#timer);
    let client: PostgresClient | undefined;
    try {
      client = await checkOut(this.#pool);
      this.#client = client;
      client.on('error', this.#onBroken);
      client.on('end', this.#onBroken);
      client.on('notification', this.#onNotification);
      await this.#subscribe(client);
      this.#failures = 0;
    } catch {
      this.#onBroken();
    } finally {
      this.#connecting = false;
    }
    if (!this.#isNeeded) this.#disconnect();
  }

  async #subscribe(client: PostgresClient): Promise<void> {
    const channel = channelName(this.#schema);
    await client.query({ text: `LISTEN "${channel.replaceAll('"', '""')}"` });
    const { rows } = await client.query({ text: 'SELECT pg_listening_channels() AS channel' });
    // Behind a transaction pooler the next statement may run elsewhere: nothing will be heard, and callers poll.
    this.#isDeaf = !rows.some((row) => row['channel'] === channel);
    if (this.#isDeaf) return;
    await this.#stayListened(client);
    // What changed meanwhile went unheard.
    for (const runIds of this.#watched.values()) for (const runId of runIds) this.#changes.tell(runId);
  }

  async #stayListened(client: PostgresClient): Promise<void> {
    await client.query({ text: `SELECT ${this.#schema}.listen(${LISTENED_SECONDS})` });
    if (this.#client !== client) return;
    this.#timer = setTimeout(
      () => {
        this.#stayListened(client).catch(this.#onBroken);
      },
      (LISTENED_SECONDS / 3) * 1000,
    );
    this.#timer.unref();
  }

  readonly #onNotification = ({ payload }: PostgresNotification): void => {
    if (payload !== undefined) this.#changes.tell(payload);
  };

  readonly #onBroken = (): void => {
    this.#disconnect();
    if (!this.#isNeeded) return;
    const seconds = RECONNECT_SECONDS[Math.min(this.#failures, RECONNECT_SECONDS.length - 1)]!;
    this.#failures += 1;
    this.#timer = setTimeout(() => void this.#connect(), seconds * 1000);
    this.#timer.unref();
  };

  /** Ends the connection, so that it does not go back to the pool listening. */
  #disconnect(): void {
    clearTimeout(this.#timer);
    const client = this.#client;
    this.#client = undefined;
    if (client === undefined) return;
    client.removeListener('end', this.#onBroken);
    client.removeListener('notification', this.#onNotification);
    client.removeListener('error', this.#onBroken);
    giveBack(client, { broken: true });
  }
}
