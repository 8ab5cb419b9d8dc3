/** The client stays the user's: these are the members that are called. `pg` 8 has them, and so have its look-alikes. */
import { StoreUnavailableError } from '../../errors.ts';
import { checkObject } from '../../options.ts';

/** The part of `pg.Pool` that the store calls. */
export interface PostgresPool {
  /** `max`: so many connections at most. */
  readonly options?: { readonly max?: number | undefined } | undefined;
  /** With a callback, which is called at once: a connection that breaks before a promise is heard would end the process. */
  connect(done: (error: Error | undefined, client: PostgresClient | undefined) => void): void;
}

/** The part of `pg.PoolClient` that the store calls. */
export interface PostgresClient {
  query(statement: PostgresStatement): Promise<{ readonly rows: ReadonlyArray<Readonly<Record<string, unknown>>> }>;
  /** Back to the pool, or ended for good when something was wrong with it. */
  release(error?: Error | boolean): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
  on(event: 'notification', listener: (notification: PostgresNotification) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'end', listener: () => void): unknown;
  removeListener(event: 'notification', listener: (notification: PostgresNotification) => void): unknown;
}

/** What `NOTIFY` tells. */
export interface PostgresNotification {
  readonly payload?: string | undefined;
}

/** A statement as `pg` takes it. */
export interface PostgresStatement {
  readonly text: string;
  readonly values?: unknown[];
  /** Prepares it under this name, once per connection. */
  readonly name?: string;
}

/** Where to find the server: the user's own pool, or a URL for which a pool is opened by `pg`. */
export interface PostgresConnection {
  /** A `pg.Pool`. It stays the caller's: listening for its `error` events and ending it are theirs too. */
  readonly pool?: PostgresPool | undefined;
  /** `postgres://...`, opened by `pg`, which must be installed. */
  readonly url?: string | URL | undefined;
}

export interface OpenedPool {
  readonly pool: PostgresPool;
  /** Ends what was opened here: nothing, when the pool was given. */
  end(): Promise<void>;
}

/** Takes a connection. What breaks it is told by its statements, so that the event of it is heard and nothing more. */
export function checkOut(pool: PostgresPool): Promise<PostgresClient> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      client?.on('error', hear);
      if (client === undefined || error) reject(error ?? new Error('The pool gave no connection'));
      else resolve(client);
    });
  });
}

/** Gives a connection back, or ends it when it cannot be trusted any more: then it may still speak of its end. */
export function giveBack(client: PostgresClient, { broken }: { readonly broken: boolean }): void {
  client.release(broken);
  if (!broken) client.removeListener('error', hear);
}

function hear(): void {}

/** The pool to use. Refuses a client of another kind at once, since its first call would fail in some obscure way. */
export async function openPool({ pool, url }: PostgresConnection, connectSeconds = 5): Promise<OpenedPool> {
  if ((pool === undefined) === (url === undefined)) {
    throw new TypeError('Expected exactly one of `pool` and `url`, got ' + (pool === undefined ? 'neither' : 'both'));
  }
  if (url !== undefined) return openUrl(url, connectSeconds);
  checkPool(pool);
  return { pool, end: async () => undefined };
}

/** @throws TypeError with what was expected and what came. */
export function checkPool(pool: unknown): asserts pool is PostgresPool {
  checkObject('pool', pool);
  const { connect, query, escapeIdentifier, ending, ended } = pool as Record<string, unknown>;
  const kind = pool.constructor?.name ?? 'object';
  if (typeof connect !== 'function' || typeof query !== 'function') {
    throw new TypeError(
      `Expected \`pool\` to be a Pool of \`pg\`, got an object of kind ${kind} without connect and query`,
    );
  }
  // Of a client, not of a pool. One connection cannot serve calls that go on at the same time.
  if (typeof escapeIdentifier === 'function') {
    throw new TypeError(
      `Expected \`pool\` to be a Pool of \`pg\`, got a single ${kind}: make it with \`new pg.Pool(...)\``,
    );
  }
  if (ending === true || ended === true) {
    throw new TypeError('Expected `pool` to be an open Pool of `pg`, got one that was ended');
  }
}

async function openUrl(url: string | URL, connectSeconds: number): Promise<OpenedPool> {
  const connectionString = String(url);
  if (!/^postgres(?:ql)?:\/\//.test(connectionString)) {
    const scheme = /^[a-z+]+:/i.exec(connectionString)?.[0] ?? 'no scheme';
    throw new TypeError(`Expected \`url\` to begin with postgres:// or postgresql://, got ${scheme}`);
  }
  const { default: pg } = await import('pg').catch((cause: unknown) => {
    throw new StoreUnavailableError('A PostgreSQL URL needs the package `pg`: npm install pg', { cause });
  });
  const connectionTimeoutMillis = Math.ceil(connectSeconds * 1000);
  const pool = new pg.Pool({ connectionString, connectionTimeoutMillis, application_name: 'lessor', keepAlive: true });
  // A connection that breaks while idle is replaced at the next call, which tells when that fails too.
  pool.on('error', () => undefined);
  return { pool, end: () => pool.end() };
}
