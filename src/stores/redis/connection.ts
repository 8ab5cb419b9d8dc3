/** What the store asks of a client, whichever it is: one adapter for `ioredis`, one for `redis`. */
import { StoreUnavailableError } from '../../errors.ts';

export interface RedisConnection {
  /** What the client puts before every key, to be put there by the store instead. */
  readonly keyPrefix: string;
  /** Then the keys of a call must lie in one slot. */
  readonly isCluster: boolean;
  isReady(): boolean;
  /** Settles when it is connected. Rejects when an attempt fails, or it is ended. However many ask, one listens. */
  untilReady(): Promise<void>;
  /** What the client last said about the connection, while there is none. */
  failure(): Error | undefined;
  /** Sends one command to the node that has the key. Never sent twice, except where a cluster's node sent it on. */
  send(key: string, command: readonly string[]): Promise<unknown>;
  /** One sender for each primary. */
  primaries(): ReadonlyArray<(command: readonly string[]) => Promise<unknown>>;
  /** Opens another connection, for messages only. */
  subscribe(onMessage: (channel: string) => void, onReconnect: () => void): RedisSubscriber;
  /** Ends the connection at once. */
  end(): void;
}

export interface RedisSubscriber {
  subscribe(channel: string): Promise<void>;
  unsubscribe(channel: string): Promise<void>;
  end(): void;
}

/** The members of an event emitter that are called. */
export interface Emitter {
  on(event: string, listener: (...args: never[]) => void): unknown;
  off(event: string, listener: (...args: never[]) => void): unknown;
}

/** Calls from the second time on: a client says `ready` when it is first connected, too. */
export function afterFirst(call: () => void): () => void {
  let isFirst = true;
  return () => {
    if (!isFirst) call();
    isFirst = false;
  };
}

/** What became of the latest attempt to connect. */
export interface Readiness {
  untilReady(): Promise<void>;
  failure(): Error | undefined;
}

export function watchReadiness(client: Emitter, isReady: () => boolean): Readiness {
  let failure: Error | undefined;
  let waiting: Promise<void> | undefined;
  // An error without a listener would be printed, or end the process. Each call tells its own.
  client.on('error', (error: Error) => (failure = error));
  return {
    untilReady: () => {
      if (isReady()) return Promise.resolve();
      // However many ask meanwhile, one listens.
      waiting ??= untilReady(client, isReady).finally(() => (waiting = undefined));
      return waiting;
    },
    failure: () => (isReady() ? undefined : failure),
  };
}

/** Waits for one of: ready, an attempt that failed, the end. */
function untilReady(client: Emitter, isReady: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      for (const event of ['ready', 'connect']) client.off(event, onReady);
      client.off('error', onError);
      client.off('end', onEnd);
      act();
    };
    // A client says `connect` before it is ready, and a cluster of `redis` says nothing else.
    const onReady = (): void => void (isReady() && settle(resolve));
    const onError = (error: Error): void =>
      settle(() => reject(new StoreUnavailableError(`Redis cannot be reached: ${error.message}`, { cause: error })));
    const onEnd = (): void => settle(() => reject(new StoreUnavailableError('The connection to Redis was ended')));
    for (const event of ['ready', 'connect']) client.on(event, onReady);
    client.on('error', onError);
    client.on('end', onEnd);
  });
}
