import { dirname } from 'node:path';
import { StoreUnavailableError } from '../errors.ts';
import { checkDuration, checkObject, checkString, rangeError } from '../options.ts';
import type { FencedStore } from '../session/fenced-store.ts';
import { homeFolder, makeFolder } from './sqlite/folder.ts';

/** How the store that a URL names is used. */
export interface OpenStoreOptions {
  /** SQLite: so long a call waits for the file's lock, in seconds. @default 5 */
  readonly busyTimeoutSeconds?: number | undefined;
  /** PostgreSQL and Redis: so long a call waits for its answer, in seconds. @default 5 */
  readonly requestTimeoutSeconds?: number | undefined;
}

type Opener = (url: string, options: OpenStoreOptions) => Promise<FencedStore>;

/** By what a URL begins with. */
const OPENERS: Readonly<Record<string, Opener>> = {
  'memory:': openMemory,
  'sqlite:': openSqlite,
  'postgres:': openPostgres,
  'postgresql:': openPostgres,
  'redis:': openRedis,
  'rediss:': openRedis,
};

/**
 * Opens the store that the URL names. Its client is loaded only now, and `close()` ends what was opened.
 *
 * - `memory:` keeps leases in this process alone.
 * - `sqlite:./leases.db` is a file, from the working directory on; `sqlite:/var/lib/leases.db` an absolute one, which
 *   `sqlite:///var/lib/leases.db` means too; `sqlite:~/leases.db` one in the user's home. What follows the colon is the path
 *   as it stands: nothing in it is decoded. Its folder is made. The driver is `better-sqlite3` where that is installed, else
 *   `libsql`, else `node:sqlite`.
 * - `postgres:` or `postgresql:` is a database in which the tables are installed. Needs `pg`.
 * - `redis:` is a server or any node of a cluster, `rediss:` one over TLS. Needs `ioredis` or `redis`.
 *
 * @throws RangeError when the URL names no store.
 * @throws StoreUnavailableError when the client is not installed, saying what to install, or the store cannot be opened.
 * @example
 * await using store = await openStore('sqlite:./leases.db');
 * const result = await store.acquire({ runId: 'job-42', workerId: 'a', acquisitionId: randomUUID(), ttlSeconds: 30 });
 */
export async function openStore(url: string, options: OpenStoreOptions = {}): Promise<FencedStore> {
  checkObject('options', options);
  const { busyTimeoutSeconds, requestTimeoutSeconds } = options;
  if (busyTimeoutSeconds !== undefined) checkDuration('busyTimeoutSeconds', busyTimeoutSeconds);
  if (requestTimeoutSeconds !== undefined) checkDuration('requestTimeoutSeconds', requestTimeoutSeconds);
  return openerOf(url)(url, options);
}

/** What opens the store that the URL names. Asks nothing yet. @throws RangeError when it names none. */
export function openerOf(url: string): Opener {
  checkString('url', url);
  const scheme = /^[a-z]+:/.exec(url)?.[0] ?? '';
  const open = Object.hasOwn(OPENERS, scheme) ? OPENERS[scheme] : undefined;
  if (!open) throw rangeError('url', `to begin with ${Object.keys(OPENERS).join(', ')}`, url);
  if (open === openSqlite) sqlitePath(url);
  else if (open === openMemory) {
    if (url !== 'memory:') throw rangeError('url', 'to be `memory:` and no more', url);
  } else if (!url.startsWith(`${scheme}//`) || !URL.canParse(url)) {
    // What is wrong with it may be a password: it is not shown.
    throw new RangeError(`Expected \`url\` to name a host, as in ${scheme}//127.0.0.1`);
  }
  return open;
}

async function openMemory(): Promise<FencedStore> {
  const { MemoryStore } = await import('./memory.ts');
  return new MemoryStore();
}

async function openSqlite(url: string, { busyTimeoutSeconds }: OpenStoreOptions): Promise<FencedStore> {
  const file = sqlitePath(url);
  const [{ loadSqliteDriver }, { SqliteStore }] = await Promise.all([
    import('./sqlite/drivers.ts'),
    import('./sqlite.ts'),
  ]);
  const Driver = await loadSqliteDriver();
  const database = openFile(() => new Driver(file), file);
  try {
    return await SqliteStore.open({ database, busyTimeoutSeconds, ownsDatabase: true });
  } catch (error) {
    database.close();
    throw error;
  }
}

async function openPostgres(url: string, { requestTimeoutSeconds }: OpenStoreOptions): Promise<FencedStore> {
  const { PostgresStore } = await import('./postgres.ts');
  return PostgresStore.open({ url, requestTimeoutSeconds });
}

async function openRedis(url: string, { requestTimeoutSeconds }: OpenStoreOptions): Promise<FencedStore> {
  const { RedisStore } = await import('./redis.ts');
  return RedisStore.open({ url, requestTimeoutSeconds });
}

function openFile<Database>(open: () => Database, file: string): Database {
  try {
    makeFolder(dirname(file));
    return open();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new StoreUnavailableError(`The SQLite file ${JSON.stringify(file)} cannot be opened: ${why}`, {
      cause: error,
    });
  }
}

function sqlitePath(url: string): string {
  const path = url.slice('sqlite:'.length);
  if (path === '' || path.includes('\0')) throw rangeError('url', 'to name a file', url);
  if (path === ':memory:') throw rangeError('url', 'to name a file. A store in memory is `memory:`', url);
  if (path.startsWith('//') && !path.startsWith('///')) {
    throw rangeError('url', 'to name a file of this machine, as in `sqlite:/path` or `sqlite:///path`', url);
  }
  return path.replace(/^\/\/\//, '/').replace(/^~(?=\/)/, homeFolder);
}
