/** A Redis cluster of three primaries on loopback, all slots assigned. */
import { startRedis, type Redis, type RedisOptions } from './redis.ts';
import { freePort } from './service.ts';

const SLOTS = 16_384;
const PRIMARIES = 3;

export interface RedisCluster {
  readonly nodes: readonly Redis[];
  /** The node that has the slot of the key. */
  nodeOf(key: string): Promise<Redis>;
  close(): Promise<void>;
}

export async function startRedisCluster(options: RedisOptions = {}): Promise<RedisCluster> {
  const config = {
    'cluster-enabled': 'yes',
    // One node down must not take the others' slots away.
    'cluster-require-full-coverage': 'no',
    'cluster-node-timeout': '2000',
    ...options.config,
  };
  // The default, 10,000 above the port, may be no port at all.
  const busPorts = await Promise.all(Array.from({ length: PRIMARIES }, freePort));
  const nodes = await Promise.all(
    busPorts.map((busPort) => startRedis({ ...options, config: { ...config, 'cluster-port': String(busPort) } })),
  );
  try {
    await assignSlots(nodes, busPorts);
    await untilJoined(nodes);
  } catch (error) {
    await Promise.all(nodes.map((node) => node.close()));
    throw error;
  }
  return {
    nodes,
    nodeOf: async (key) => {
      const slot = Number(await nodes[0]!.command('CLUSTER', 'KEYSLOT', key));
      return nodes[Math.floor((slot * PRIMARIES) / SLOTS)]!;
    },
    close: async () => void (await Promise.all(nodes.map((node) => node.close()))),
  };
}

/** Each node gets a third of the slots and an epoch of its own, and the first is introduced to the others. */
async function assignSlots(nodes: readonly Redis[], busPorts: readonly number[]): Promise<void> {
  for (const [index, node] of nodes.entries()) {
    const first = Math.ceil((index * SLOTS) / PRIMARIES);
    const last = Math.ceil(((index + 1) * SLOTS) / PRIMARIES) - 1;
    await node.command('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
    await node.command('CLUSTER', 'ADDSLOTSRANGE', String(first), String(last));
  }
  for (const [index, node] of nodes.entries()) {
    if (index > 0) {
      await nodes[0]!.command('CLUSTER', 'MEET', '127.0.0.1', String(node.port), String(busPorts[index]));
    }
  }
}

async function untilJoined(nodes: readonly Redis[]): Promise<void> {
  const deadline = performance.now() + 60_000;
  for (const node of nodes) {
    for (;;) {
      const info = String(await node.command('CLUSTER', 'INFO'));
      if (info.includes('cluster_state:ok') && info.includes(`cluster_size:${PRIMARIES}`)) break;
      if (performance.now() > deadline) throw new Error(`The Redis cluster did not form in 60 s:\n${info}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
