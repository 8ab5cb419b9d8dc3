import { checkDuration, checkOneOf } from '../../options.ts';
import type { Durability } from '../store.ts';
import { Caller } from './caller.ts';
import { openPool, type OpenedPool, type PostgresConnection } from './client.ts';
import type { FenceHome } from './fence-statements.ts';
import { quoteSchema } from './migrate.ts';
import { readOpening, type FailoverPolicy } from './opening.ts';

/** Where the leases are, and how to ask for them. */
export interface PostgresStoreOptions extends PostgresConnection {
  /** The schema that `migratePostgres` has installed. @default 'lessor' */
  readonly schema?: string | undefined;
  /** How long a call may take, in seconds, from the call on: waiting for a connection and for a locked row is part of it. @default 5 */
  readonly requestTimeoutSeconds?: number | undefined;
  /**
   * Whether statements are prepared, once per connection. A pooler that mixes up connections without knowing of prepared
   * statements is noticed, and they are no longer prepared. @default true
   */
  readonly prepare?: boolean | undefined;
  /** Whether waiters are woken by `LISTEN`, on one more connection while somebody waits. @default true, unless the pool has but one */
  readonly listen?: boolean | undefined;
  /**
   * What a promoted standby does to this open store: `refuse` rejects every call with `StateLostError` until the store is
   * opened anew, since grants may be missing. @default 'continue' with synchronous standbys, else 'refuse'
   */
  readonly failover?: FailoverPolicy | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A pool whose leases were found. */
export interface OpenPostgres {
  readonly opened: OpenedPool;
  readonly caller: Caller;
  readonly home: FenceHome;
  readonly durability: Durability;
  readonly requestTimeoutSeconds: number;
  readonly listen: boolean;
}

export async function openPostgres(options: PostgresStoreOptions): Promise<OpenPostgres> {
  const { schema = 'lessor', requestTimeoutSeconds = 5, prepare = true, listen = true, failover, signal } = options;
  const quoted = quoteSchema(schema);
  checkDuration('requestTimeoutSeconds', requestTimeoutSeconds, 1e6);
  if (failover !== undefined) checkOneOf('failover', failover, ['refuse', 'continue']);
  const opened = await openPool(options, requestTimeoutSeconds);
  const caller = new Caller({ pool: opened.pool, schema: quoted, requestTimeoutSeconds, prepare });
  try {
    const { home, durability } = await readOpening(caller, quoted, failover, signal);
    // A listener keeps a connection to itself: the only one would be no more there for the calls.
    const hears = listen && opened.pool.options?.max !== 1;
    const where = { schema: quoted, home, prepare };
    return { opened, caller, home: where, durability, requestTimeoutSeconds, listen: hears };
  } catch (error) {
    caller.close();
    await opened.end();
    throw error;
  }
}
