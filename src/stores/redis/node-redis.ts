/** `redis`, also called node-redis: a single server or a cluster. */
import { afterFirst, watchReadiness, type Emitter, type RedisConnection, type RedisSubscriber } from './connection.ts';

/** The members of a client that are called. */
export interface NodeRedisClient extends Emitter {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  readonly options?: { readonly keyPrefix?: string | undefined } | undefined;
  connect(): Promise<unknown>;
  emit(event: 'error', error: unknown): unknown;
  sendCommand(command: readonly string[]): Promise<unknown>;
  duplicate(overrides: object): NodeRedisClient;
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  destroy(): void;
}

/** What a cluster has instead. */
export interface NodeRedisCluster extends Omit<NodeRedisClient, 'sendCommand'> {
  readonly masters: readonly object[];
  nodeClient(node: object): Promise<NodeRedisClient> | NodeRedisClient;
  sendCommand(key: string, isReadonly: boolean, command: readonly string[]): Promise<unknown>;
}

export function isCluster(client: NodeRedisClient | NodeRedisCluster): client is NodeRedisCluster {
  return 'nodeClient' in client;
}

/** A connection that rejects what it cannot send now, and answers in plain strings and numbers. */
export function duplicateNodeRedis<Client extends NodeRedisClient | NodeRedisCluster>(
  client: Client,
  requestTimeoutSeconds: number,
): Client {
  // A cluster's nodes have a queue each, which must give up before the call does. A single connection has none, and its
  // timeout would only cost time.
  const timeout = isCluster(client) ? Math.ceil(requestTimeoutSeconds * 900) : undefined;
  const commandOptions = { timeout };
  return client.duplicate({ disableOfflineQueue: true, keyPrefix: '', commandOptions }) as Client;
}

/** @param client - the store's own, from here on. */
export function connectNodeRedis(client: NodeRedisClient | NodeRedisCluster, keyPrefix = ''): RedisConnection {
  const isReady = (): boolean => client.isReady;
  const readiness = watchReadiness(client, isReady);
  let connecting: Promise<unknown>;
  const connect = (): void => {
    // A cluster that finds no node only rejects, and those who wait listen.
    connecting = client.connect().catch((error: unknown) => client.emit('error', error));
  };
  connect();
  return {
    keyPrefix,
    isCluster: isCluster(client),
    isReady,
    untilReady: () => {
      // It gives up for good where the user's `reconnectStrategy` says so, or a cluster's first attempt failed.
      if (!client.isOpen) connect();
      return readiness.untilReady();
    },
    failure: readiness.failure,
    send: (key, command) => (isCluster(client) ? client.sendCommand(key, false, command) : client.sendCommand(command)),
    primaries: () =>
      isCluster(client)
        ? client.masters.map((node) => async (command) => (await client.nodeClient(node)).sendCommand(command))
        : [(command) => client.sendCommand(command)],
    subscribe: (onMessage, onReconnect) => subscribeNodeRedis(client, onMessage, onReconnect),
    end: () => end(client, connecting),
  };
}

function subscribeNodeRedis(
  client: NodeRedisClient | NodeRedisCluster,
  onMessage: (channel: string) => void,
  onReconnect: () => void,
): RedisSubscriber {
  const subscriber = client.duplicate({ disableOfflineQueue: false });
  subscriber.on('error', ignore);
  subscriber.on('ready', afterFirst(onReconnect));
  const connected = subscriber.connect();
  connected.catch(ignore);
  const onChannel = (_message: string, channel: string): void => onMessage(channel);
  return {
    subscribe: async (channel) => {
      await connected;
      await subscriber.subscribe(channel, onChannel);
    },
    unsubscribe: async (channel) => {
      if (subscriber.isOpen) await subscriber.unsubscribe(channel);
    },
    end: () => end(subscriber, connected),
  };
}

/** A cluster that was still looking for its nodes connects to them after it was told to end. */
function end(client: NodeRedisClient | NodeRedisCluster, connecting: Promise<unknown>): void {
  client.destroy();
  connecting
    .catch(ignore)
    .then(() => client.destroy())
    .catch(ignore);
}

function ignore(): void {}
