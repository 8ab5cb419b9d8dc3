/** `ioredis`: a single server, sentinels, or a cluster. */
import { afterFirst, watchReadiness, type Emitter, type RedisConnection, type RedisSubscriber } from './connection.ts';

/** The members of `Redis` and `Cluster` that are called. */
export interface IoredisClient extends Emitter {
  readonly status: string;
  readonly isCluster: boolean;
  /** The socket of a single server. */
  readonly stream?: { cork(): void; uncork(): void } | undefined;
  readonly options: { readonly keyPrefix?: string | undefined; readonly redisOptions?: object | undefined };
  connect(): Promise<unknown>;
  call(command: string, ...args: string[]): Promise<unknown>;
  nodes(role: 'master'): IoredisClient[];
  duplicate(...overrides: readonly unknown[]): IoredisClient;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  disconnect(): void;
}

/**
 * A connection whose commands are sent once or rejected. By default `ioredis` sends those again that were on their way when
 * the connection broke, whenever it comes back: an acquire could then take effect twice, the second time unasked.
 */
const SENT_ONCE = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0, keyPrefix: '' };

export const SINGLE_OPTIONS = { ...SENT_ONCE, lazyConnect: true, enableOfflineQueue: false };

export function clusterOptions(redisOptions: object | undefined, requestTimeoutSeconds: number): object {
  const own = { keyPrefix: '', lazyConnect: true, enableOfflineQueue: false, retryDelayOnFailover: 0 };
  const slotsRefreshTimeout = Math.ceil(requestTimeoutSeconds * 1000);
  return { ...own, slotsRefreshTimeout, redisOptions: { ...redisOptions, ...SENT_ONCE } };
}

export function duplicateIoredis(client: IoredisClient, requestTimeoutSeconds: number): IoredisClient {
  if (!client.isCluster) return client.duplicate(SINGLE_OPTIONS);
  return client.duplicate([], clusterOptions(client.options.redisOptions, requestTimeoutSeconds));
}

/** @param client - the store's own, from here on. */
export function connectIoredis(client: IoredisClient, keyPrefix = ''): RedisConnection {
  const isReady = (): boolean => client.status === 'ready';
  const readiness = watchReadiness(client, isReady);
  const connect = (): void => void client.connect().catch(ignore);
  const cork = corker(client);
  const send = sender(client);
  connect();
  return {
    keyPrefix,
    isCluster: client.isCluster,
    isReady,
    untilReady: () => {
      // It gives up for good where the user's `retryStrategy` says so.
      if (client.status === 'end') connect();
      return readiness.untilReady();
    },
    failure: readiness.failure,
    send: (_key, command) => {
      cork();
      return send(command);
    },
    primaries: () => (client.isCluster ? client.nodes('master') : [client]).map(sender),
    subscribe: (onMessage, onReconnect) => subscribeIoredis(client, onMessage, onReconnect),
    end: () => client.disconnect(),
  };
}

/** What is sent after the first in one turn of the event loop goes out in one write, not in one each. */
function corker(client: IoredisClient): () => void {
  let sent = 0;
  let corked: IoredisClient['stream'];
  const endTurn = (): void => {
    sent = 0;
    corked?.uncork();
    corked = undefined;
  };
  return () => {
    sent += 1;
    if (sent === 1) process.nextTick(endTurn);
    if (sent !== 2) return;
    corked = client.stream;
    corked?.cork();
  };
}

function sender(client: IoredisClient): (command: readonly string[]) => Promise<unknown> {
  return (command) => client.call(...(command as readonly [string, ...string[]]));
}

function subscribeIoredis(
  client: IoredisClient,
  onMessage: (channel: string) => void,
  onReconnect: () => void,
): RedisSubscriber {
  // Nothing is lost by asking for messages late or twice. Its own way of asking again, when a connection is back, ends the
  // process where that fails: nobody could catch it. A cluster's does not.
  const options = { enableOfflineQueue: true, maxRetriesPerRequest: null, autoResubscribe: client.isCluster };
  const subscriber = client.isCluster ? client.duplicate([], options) : client.duplicate(options);
  const channels = new Set<string>();
  const onReady = (): void => {
    const asked = client.isCluster || channels.size === 0 ? Promise.resolve() : subscriber.subscribe(...channels);
    asked.then(onReconnect, ignore);
  };
  subscriber.on('error', ignore);
  subscriber.on('message', onMessage);
  subscriber.on('ready', afterFirst(onReady));
  subscriber.connect().catch(ignore);
  return {
    subscribe: async (channel) => {
      channels.add(channel);
      await subscriber.subscribe(channel);
    },
    unsubscribe: async (channel) => {
      channels.delete(channel);
      await subscriber.unsubscribe(channel);
    },
    end: () => subscriber.disconnect(),
  };
}

function ignore(): void {}
