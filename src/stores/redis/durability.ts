/** What the servers were found to keep, read at opening. What they do not tell is unknown, and said so. */
import type { Durability } from '../store.ts';
import type { RedisConnection } from './connection.ts';

export interface Findings {
  readonly durability: Durability;
  /** The policy by which a server drops leases when its memory is full, or null. */
  readonly evicts: string | null;
  /** Whether the server belongs to a cluster. */
  readonly isClusterNode: boolean;
}

interface Server {
  readonly appendonly: boolean | undefined;
  /** `always`, `everysec` or `no`. */
  readonly appendfsync: string | undefined;
  readonly saves: boolean | undefined;
  readonly maxmemory: number | undefined;
  readonly policy: string | undefined;
  readonly isClusterNode: boolean;
}

type Level = Durability['survives'];

const LEVELS: readonly Level[] = ['unknown', 'nothing', 'process-crash', 'power-loss'];

const FAILOVER =
  'Replication is asynchronous: a replica that is promoted may lack the newest leases, so two workers may believe ' +
  'until the older one is at its deadline. No token repeats unless its clock is behind by more than the failover took.';

/** Of a cluster: what the weakest primary keeps. */
export async function readDurability(connection: RedisConnection): Promise<Findings> {
  const servers = await Promise.all(connection.primaries().map(readServer));
  const found = servers.map(judge);
  const survives = LEVELS[Math.min(...found.map((each) => LEVELS.indexOf(each.survives)))] ?? 'unknown';
  const warnings = new Set(found.flatMap((each) => each.warnings));
  const evicting = servers.find(({ policy, maxmemory }) => policy?.startsWith('allkeys-') && maxmemory !== 0);
  return {
    durability: { survives, warnings: [...warnings] },
    evicts: evicting?.policy ?? null,
    isClusterNode: servers.some((server) => server.isClusterNode),
  };
}

/** `INFO` is allowed in most places; managed services forbid `CONFIG`. */
async function readServer(send: (command: readonly string[]) => Promise<unknown>): Promise<Server> {
  const ask = (command: readonly string[]): Promise<unknown> => send(command).catch(() => undefined);
  const [info, appendonly, appendfsync, save] = await Promise.all([
    ask(['info']),
    ...['appendonly', 'appendfsync', 'save'].map((name) => ask(['config', 'get', name])),
  ]);
  const lines = new Map(
    String(info ?? '')
      .split('\r\n')
      .map((line) => line.split(':') as [string, string]),
  );
  const configured = settingOf(appendonly) ?? lines.get('aof_enabled');
  return {
    appendonly: configured === undefined ? undefined : configured === 'yes' || configured === '1',
    appendfsync: settingOf(appendfsync),
    saves: settingOf(save) === undefined ? undefined : settingOf(save) !== '',
    maxmemory: numberOf(lines.get('maxmemory')),
    policy: lines.get('maxmemory_policy'),
    isClusterNode: lines.get('cluster_enabled') === '1',
  };
}

/** The value of a setting, which comes as a pair or as an object, or undefined where it was not told. */
function settingOf(reply: unknown): string | undefined {
  if (typeof reply !== 'object' || reply === null) return undefined;
  const value: unknown = Array.isArray(reply) ? reply[1] : Object.values(reply)[0];
  return value === undefined ? undefined : String(value);
}

function numberOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text);
}

function judge(server: Server): Durability {
  const { appendonly, appendfsync } = server;
  const warnings = [...memoryWarnings(server), FAILOVER];
  if (appendonly === undefined) {
    return { survives: 'unknown', warnings: ['The server does not tell what it keeps over a restart.', ...warnings] };
  }
  if (!appendonly) {
    const kept = server.saves ? 'what is newer than its last snapshot' : 'all leases';
    const lost = `The append-only file is off: a restart loses ${kept}. Tokens go on rising, by the server's clock.`;
    return { survives: 'nothing', warnings: [lost, ...warnings] };
  }
  switch (appendfsync) {
    case 'always':
      return { survives: 'power-loss', warnings };
    case undefined:
      return {
        survives: 'process-crash',
        warnings: ['The server does not tell how often it syncs to disk.', ...warnings],
      };
    default: {
      const time = appendfsync === 'everysec' ? 'about a second' : 'some 30 seconds';
      return { survives: 'process-crash', warnings: [`A power loss may lose ${time} of grants.`, ...warnings] };
    }
  }
}

/** Policies named `volatile-` spare the leases, which have no expiry of the server's. */
function memoryWarnings({ policy, maxmemory }: Server): string[] {
  if (policy === undefined) return ['The server does not tell whether it drops keys when its memory is full.'];
  if (!policy.startsWith('allkeys-')) return [];
  const when = maxmemory === 0 ? 'would drop leases if `maxmemory` were set' : 'drops leases when its memory is full';
  return [`The server's policy ${policy} ${when}. Set \`maxmemory-policy noeviction\`.`];
}
