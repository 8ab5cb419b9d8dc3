/** A TCP proxy before a test's server: it cuts, delays and swallows, in each direction. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface Proxy {
  readonly port: number;
  /** How many connections are open through it. */
  connections(): number;
  /** What it does with bytes from now on. Open connections are meant too. */
  set(behaviour: ProxyBehaviour): void;
  /** Settles once a reply was swallowed since the last `set`: the server has acted by then. */
  untilSwallowed(): Promise<void>;
  /** New connections go to that port of 127.0.0.1, and open ones are broken. */
  moveTo(port: number): void;
  /** Breaks every open connection. */
  cut(): void;
  close(): Promise<void>;
}

/**
 * - `pass`: bytes go both ways.
 * - `dropReplies`: requests arrive and take effect, replies do not come back.
 * - `dropRequests`: nothing arrives at the server.
 * - `cutOnReply`: the first reply breaks the connection instead of coming back.
 * - `refuse`: open connections are broken and new ones at once.
 */
export type ProxyBehaviour = 'pass' | 'dropReplies' | 'dropRequests' | 'cutOnReply' | 'refuse';

/** Starts one before the server at that port of 127.0.0.1. */
export async function startProxy(targetPort: number): Promise<Proxy> {
  let target = targetPort;
  let behaviour: ProxyBehaviour = 'pass';
  let swallowed = newSignal();
  const pairs = new Set<readonly [Socket, Socket]>();
  const cut = (): void => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
  };
  const server = createServer((client) => {
    if (behaviour === 'refuse') return void client.destroy();
    const upstream = connect(target, '127.0.0.1');
    const pair = [client, upstream] as const;
    pairs.add(pair);
    for (const socket of pair) {
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => {
        pairs.delete(pair);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (bytes) => void (behaviour !== 'dropRequests' && upstream.write(bytes)));
    upstream.on('data', (bytes) => {
      if (behaviour === 'pass' || behaviour === 'dropRequests') return void client.write(bytes);
      swallowed.fire();
      if (behaviour === 'cutOnReply') client.destroy();
    });
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => pairs.size,
    set: (next) => {
      behaviour = next;
      swallowed = newSignal();
      if (next === 'refuse') cut();
    },
    untilSwallowed: () => swallowed.fired,
    moveTo: (port) => {
      target = port;
      cut();
    },
    cut,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      cut();
      await closed;
    },
  };
}

function newSignal(): { readonly fired: Promise<void>; fire(): void } {
  let fire!: () => void;
  const fired = new Promise<void>((resolve) => (fire = resolve));
  return { fired, fire };
}
