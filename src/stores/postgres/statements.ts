/**
 * The statements of the calls. Each begins with the row of `meta`, and answers no row at all when the leases are not the
 * ones that the store was opened on. Answers are text, which no type parser of the user's changes.
 */
import { statement, type Statement } from './caller.ts';
import { channelOf } from './functions.ts';

export interface Statements {
  readonly acquire: Statement;
  readonly acquireMany: Statement;
  readonly renew: Statement;
  readonly release: Statement;
  readonly releaseMany: Statement;
  readonly revoke: Statement;
  readonly read: Statement;
  readonly list: Statement;
  readonly currentFence: Statement;
  readonly openDocuments: Statement;
  readonly commitDocuments: Statement;
}

/** What is the same in every call of one store. */
export interface StatementParts {
  /** Quoted. */
  readonly schema: string;
  /** Where the leases live, as the store found them. */
  readonly home: string;
  /** The longest wait for a locked row, as PostgreSQL writes it. */
  readonly lockWait: string;
}

const PAGE_ROWS = 500;
/** Many calls wait no longer for another's new row. Each then goes by itself, and waits as long as it may. */
const LOCK_WAIT_OF_MANY = '50ms';

/** Shorter than the call, so that the server's own answer, that nothing was applied, arrives. */
export function lockWaitOf(requestTimeoutSeconds: number): string {
  return `${Math.max(1, Math.floor(requestTimeoutSeconds * 800))}ms`;
}

export function statementsOf(parts: StatementParts): Statements {
  return {
    acquire: { ...statement(acquire(parts)), writes: true },
    acquireMany: { ...statement(acquireMany(parts)), writes: true },
    renew: { ...statement(renew(parts)), writes: true },
    release: { ...statement(release(parts)), writes: true },
    releaseMany: { ...statement(releaseMany(parts)), writes: true },
    revoke: { ...statement(revoke(parts)), writes: true },
    read: statement(read(parts)),
    list: statement(list(parts)),
    currentFence: statement(currentFence(parts)),
    // Raising a fence changes nothing that a repeated opening would not change again.
    openDocuments: statement(openDocuments(parts)),
    commitDocuments: { ...statement(commitDocuments(parts)), writes: true },
  };
}

/** Where the leases of `meta m` are. A home is the beginning of it. */
export const placeOf = (schema: string): string => `m.marker || '/' || m.tableoid || '/' || ${schema}.timeline()`;

/** Whether the leases of `meta m` are those that the store was opened on. */
export const isHome = ({ schema, home }: Pick<StatementParts, 'schema' | 'home'>): string =>
  `starts_with(${placeOf(schema)}, ${quote(home)})`;

/** Reading `settings` bounds the wait for locks, and makes the commit durable before it is answered, whatever the role's default. */
const forWriting = (parts: StatementParts): string =>
  `SELECT m.token_floor, m.listened_until > clock_timestamp() AS listened, ${parts.schema}.settings(${quote(parts.lockWait)}) AS settings
    FROM ${parts.schema}.meta m WHERE ${isHome(parts)}`;

const forReading = (parts: StatementParts): string => `SELECT FROM ${parts.schema}.meta m WHERE ${isHome(parts)}`;

const notify = ({ schema }: StatementParts): string => `pg_notify(${channelOf(schema)}, $1)`;

/**
 * Looks without a lock, so that a refusal writes nothing. Then INSERT locks the row that is there, and only after that
 * evaluates its conditions and values: the clock is read behind the lock, which a plain UPDATE would not do. Take-over
 * waits for no fence row. What is left, a worker's own live lease or a row that changed meanwhile, a function decides.
 */
const acquire = (parts: StatementParts): string => {
  const { schema: s } = parts;
  return `WITH seen AS MATERIALIZED (
      SELECT m.listened_until > clock_timestamp() AS listened, ${s}.settings(${quote(parts.lockWait)}) AS settings,
        greatest(m.token_floor, f.fencing_token) AS floor, l.fencing_token, l.worker_id, l.acquisition_id,
        l.expires_at - clock_timestamp() AS remaining,
        (l.released_at IS NULL AND l.expires_at > clock_timestamp()) IS TRUE AS live
      FROM ${s}.meta m LEFT JOIN ${s}.lease l ON l.run_id = $1 LEFT JOIN ${s}.fence f ON f.run_id = $1
      WHERE ${isHome(parts)}
    ), granted AS (
      INSERT INTO ${s}.lease AS l
        (run_id, worker_id, fencing_token, acquisition_id, ttl_seconds, acquired_at, expires_at)
        SELECT $1, $2, greatest(floor, fencing_token) + 1, $3, $4, clock_timestamp(), clock_timestamp() + ${s}.ttl($4)
        FROM seen WHERE NOT live
      ON CONFLICT (run_id) DO UPDATE SET worker_id = excluded.worker_id,
        fencing_token = greatest(excluded.fencing_token, l.fencing_token + 1), acquisition_id = excluded.acquisition_id,
        ttl_seconds = excluded.ttl_seconds, acquired_at = clock_timestamp(), expires_at = clock_timestamp() + ${s}.ttl($4),
        released_at = NULL, revoked_at = NULL, revoked_by = NULL, revoked_reason = NULL
        WHERE l.released_at IS NOT NULL OR l.expires_at <= clock_timestamp()
      RETURNING l.fencing_token, l.acquired_at, l.expires_at
    ), answered AS (
      SELECT listened, CASE
        WHEN g.acquired_at < clock_timestamp() - interval '100 ms' THEN ${s}.outrun()
        WHEN g.expires_at IS NOT NULL THEN 'granted ' || g.fencing_token || ' ' || ${s}.microseconds(g.expires_at)
        WHEN live AND (worker_id <> $2 OR NOT $5::boolean AND acquisition_id <> $3)
          THEN ${s}.held(seen.fencing_token, remaining, worker_id)
        ELSE ${s}.acquire($1, $2, $3, $4, $5, floor, NOT live) END AS answer
      FROM seen LEFT JOIN granted g ON true
    )
    SELECT answer || CASE WHEN listened AND answer NOT LIKE 'held%' THEN ${notify(parts)}::text ELSE '' END AS answer
    FROM answered`;
};

const ofMany = (parts: StatementParts): StatementParts => ({ ...parts, lockWait: LOCK_WAIT_OF_MANY });

const acquireMany = (parts: StatementParts): string => `WITH home AS MATERIALIZED (${forWriting(ofMany(parts))})
    SELECT place::text, answer FROM home, LATERAL ${parts.schema}.acquire_many($1, $2, $3, $4, token_floor, listened)`;

const releaseMany = (parts: StatementParts): string => `WITH home AS MATERIALIZED (${forWriting(ofMany(parts))})
    SELECT place::text, answer FROM home, LATERAL ${parts.schema}.release_many($1, $2, $3, $4, listened)`;

const renew = (parts: StatementParts): string => `WITH home AS MATERIALIZED (${forWriting(parts)})
    SELECT place::text, until_us, blocked::text, worker, token, acquisition, released::text, revoked::text
    FROM home, LATERAL ${parts.schema}.renew($1, $2, $3, $4, $5, $6)`;

const release = (parts: StatementParts): string => `WITH home AS MATERIALIZED (${forWriting(parts)}), freed AS (
      UPDATE ${parts.schema}.lease l SET released_at = clock_timestamp() FROM home
      WHERE l.run_id = $1 AND l.worker_id = $2 AND l.acquisition_id = $3 AND l.released_at IS NULL
        AND l.fencing_token = coalesce($4, l.fencing_token)
      RETURNING CASE WHEN listened THEN ${notify(parts)} END)
    SELECT EXISTS (SELECT FROM freed)::text AS released FROM home`;

const revoke = (parts: StatementParts): string => `WITH home AS MATERIALIZED (${forWriting(parts)}), freed AS (
      UPDATE ${parts.schema}.lease l SET released_at = clock_timestamp(), revoked_at = clock_timestamp(),
        revoked_by = $2, revoked_reason = $3 FROM home
      WHERE l.run_id = $1 AND l.released_at IS NULL
      RETURNING l.worker_id AS worker, l.fencing_token::text AS token, ${parts.schema}.microseconds(l.expires_at) AS until_us,
        l.ttl_seconds::text AS ttl, CASE WHEN listened THEN ${notify(parts)} END)
    SELECT worker, token, until_us, ttl FROM home LEFT JOIN freed ON true`;

const record = (
  s: string,
): string => `l.run_id, l.worker_id, l.fencing_token::text AS token, l.ttl_seconds::text AS ttl,
    CASE WHEN l.released_at IS NOT NULL THEN 'free' WHEN l.expires_at > l.now THEN 'held' ELSE 'expired' END AS state,
    ${s}.microseconds(l.acquired_at) AS acquired_us,
    CASE WHEN l.released_at IS NULL THEN ${s}.microseconds(l.expires_at) END AS until_us,
    CASE WHEN l.released_at IS NULL AND l.expires_at > l.now
      THEN (extract(epoch FROM l.expires_at - l.now) * 1000000)::bigint::text ELSE '0' END AS remaining_us,
    greatest(l.fencing_token, f.fencing_token)::text AS fence,
    ${s}.microseconds(l.revoked_at) AS revoked_us, l.revoked_by, l.revoked_reason`;

const read = (parts: StatementParts): string => `WITH home AS MATERIALIZED (${forReading(parts)}),
      l AS MATERIALIZED (SELECT *, clock_timestamp() AS now FROM ${parts.schema}.lease WHERE run_id = $1)
    SELECT ${record(parts.schema)} FROM home LEFT JOIN l ON true LEFT JOIN ${parts.schema}.fence f ON f.run_id = l.run_id`;

const list = (parts: StatementParts): string => `WITH home AS MATERIALIZED (${forReading(parts)}), l AS MATERIALIZED (
      SELECT *, clock_timestamp() AS now FROM ${parts.schema}.lease
      WHERE run_id >= $1 COLLATE "C" AND ($2::text IS NULL OR run_id < $2 COLLATE "C") AND run_id > $3 COLLATE "C"
      ORDER BY run_id LIMIT ${PAGE_ROWS}),
    r AS (SELECT ${record(parts.schema)} FROM l LEFT JOIN ${parts.schema}.fence f ON f.run_id = l.run_id)
    SELECT (r.run_id IS NOT NULL AND coalesce(r.worker_id = $4, true) AND coalesce(r.state = $5, true))::text
      AS listed, r.*
    FROM home LEFT JOIN r ON true ORDER BY r.run_id COLLATE "C"`;

const currentFence = (parts: StatementParts): string => `WITH home AS MATERIALIZED (${forReading(parts)})
    SELECT greatest((SELECT fencing_token FROM ${parts.schema}.lease WHERE run_id = $1),
      (SELECT fencing_token FROM ${parts.schema}.fence WHERE run_id = $1))::text AS fence FROM home`;

const openDocuments = (parts: StatementParts): string => `WITH home AS MATERIALIZED (${forWriting(parts)})
    SELECT d.* FROM home, LATERAL ${parts.schema}.open_documents($1, $2, $3, $4, $5, $6) WITH ORDINALITY AS d
      (version, json, place) ORDER BY place`;

const commitDocuments = (parts: StatementParts): string => `WITH home AS MATERIALIZED (${forWriting(parts)})
    SELECT ${parts.schema}.commit_documents($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)::text AS committed FROM home`;

function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
