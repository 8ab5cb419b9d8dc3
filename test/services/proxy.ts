/** A TCP proxy before a test's server: it cuts, holds and swallows, in each direction. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface Proxy {
  readonly port: number;
  /** How many connections are open through it. */
  connections(): number;
  /** What it does with bytes from now on. Open connections are meant too. */
  set(behaviour: ProxyBehaviour): void;
  /** Settles once a reply was swallowed since the last `set`: the server has acted by then. */
  untilSwallowed(): Promise<void>;
  /** Settles once a request is held since the last `set`. */
  untilHeld(): Promise<void>;
  /** Lets so many bytes through that way, from now on and over all connections, and breaks the one that brings them. */
  cutAfter(way: Way, bytes: number): void;
  /** The bytes that went each way since the last `set` or `cutAfter`. */
  passed(): Readonly<Record<Way, number>>;
  /** New connections go to that port of 127.0.0.1, and open ones are broken. */
  moveTo(port: number): void;
  /** Breaks every open connection. */
  cut(): void;
  close(): Promise<void>;
}

export type Way = 'requests' | 'replies';

/**
 * - `pass`: bytes go both ways.
 * - `dropReplies`: requests arrive and take effect, replies do not come back.
 * - `dropRequests`: nothing arrives at the server.
 * - `holdRequests`: requests wait on the way, and go on when something else is set.
 * - `cutOnReply`: the first reply breaks the connection instead of coming back.
 * - `refuse`: open connections are broken and new ones at once.
 */
export type ProxyBehaviour = 'pass' | 'dropReplies' | 'dropRequests' | 'holdRequests' | 'cutOnReply' | 'refuse';

/** Starts one before the server at that port of 127.0.0.1. */
export async function startProxy(targetPort: number): Promise<Proxy> {
  let target = targetPort;
  let behaviour: ProxyBehaviour = 'pass';
  let swallowed = newSignal();
  let held = newSignal();
  const waiting: (() => void)[] = [];
  const meter = new Meter();
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
    client.on('data', (bytes) => {
      if (behaviour === 'dropRequests') return;
      if (behaviour !== 'holdRequests') return meter.forward('requests', bytes, upstream, client);
      waiting.push(() => meter.forward('requests', bytes, upstream, client));
      held.fire();
    });
    upstream.on('data', (bytes) => {
      const isCut = behaviour === 'cutOnReply' || behaviour === 'dropReplies';
      if (!isCut) return meter.forward('replies', bytes, client, upstream);
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
      held = newSignal();
      meter.start();
      for (const goOn of waiting.splice(0)) goOn();
      if (next === 'refuse') cut();
    },
    untilSwallowed: () => swallowed.fired,
    untilHeld: () => held.fired,
    cutAfter: (way, bytes) => meter.start(way, bytes),
    passed: () => ({ ...meter.passed }),
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

/** Counts what goes through, and ends it after so many bytes. */
class Meter {
  passed: Record<Way, number> = { requests: 0, replies: 0 };
  #most: Record<Way, number> = { requests: Infinity, replies: Infinity };
  readonly #broken = new WeakSet<Socket>();

  start(way: Way = 'requests', most = Infinity): void {
    this.passed = { requests: 0, replies: 0 };
    this.#most = { requests: Infinity, replies: Infinity, [way]: most };
  }

  /** What comes at the end of the allowance still arrives; its sender is told nothing but that the connection broke. */
  forward(way: Way, bytes: Buffer, to: Socket, from: Socket): void {
    if (this.#broken.has(to)) return;
    const room = this.#most[way] - this.passed[way];
    const part = bytes.subarray(0, room);
    this.passed[way] += part.length;
    if (part.length > 0 && !to.destroyed) to.write(part);
    if (bytes.length < room) return;
    this.#broken.add(from);
    from.pause();
    to.end(() => from.destroy());
  }
}

function newSignal(): { readonly fired: Promise<void>; fire(): void } {
  let fire!: () => void;
  const fired = new Promise<void>((resolve) => (fire = resolve));
  return { fired, fire };
}
