/** The statements of the calls, for a quoted schema. Answers are text, which no type parser of the user's changes. */
import { statement, type Statement } from './caller.ts';

export interface Statements {
  readonly acquire: Statement;
  readonly renew: Statement;
  readonly release: Statement;
  readonly revoke: Statement;
  readonly read: Statement;
  readonly list: Statement;
  readonly currentFence: Statement;
}

const PAGE_ROWS = 500;

const RECORD = `l.run_id, l.worker_id, l.fencing_token::text AS token, l.ttl_seconds::text AS ttl,
  CASE WHEN l.released_at IS NOT NULL THEN 'free' WHEN l.expires_at > l.now THEN 'held' ELSE 'expired' END AS state,
  (extract(epoch FROM l.acquired_at) * 1000000)::bigint::text AS acquired_us,
  CASE WHEN l.released_at IS NULL THEN (extract(epoch FROM l.expires_at) * 1000000)::bigint::text END AS until_us,
  CASE WHEN l.released_at IS NULL AND l.expires_at > l.now
    THEN (extract(epoch FROM l.expires_at - l.now) * 1000000)::bigint::text ELSE '0' END AS remaining_us,
  greatest(l.fencing_token, f.fencing_token)::text AS fence,
  (extract(epoch FROM l.revoked_at) * 1000000)::bigint::text AS revoked_us, l.revoked_by, l.revoked_reason`;

export function statementsOf(s: string): Statements {
  const home = `SELECT CASE WHEN ${s}.is_home($1) THEN 1 END AS one`;
  return {
    acquire: writing(`SELECT * FROM ${s}.acquire($1, $2, $3, $4, $5, $6, $7, $8)`),
    renew:
      writing(`SELECT place::text, until_us, blocked::text, worker, token, acquisition, released::text, revoked::text
      FROM ${s}.renew($1, $2, $3, $4, $5, $6, $7, $8, $9)`),
    release: writing(`SELECT released::text FROM ${s}.release($1, $2, $3, $4, $5, $6)`),
    revoke: writing(`SELECT * FROM ${s}.revoke($1, $2, $3, $4, $5)`),
    read: reading(`WITH home AS MATERIALIZED (${home})
      SELECT ${RECORD} FROM home, LATERAL (SELECT *, clock_timestamp() AS now FROM ${s}.lease WHERE run_id = $2 OFFSET 0) l
      LEFT JOIN ${s}.fence f ON f.run_id = l.run_id`),
    list: reading(`WITH home AS MATERIALIZED (${home}), page AS MATERIALIZED (
        SELECT *, clock_timestamp() AS now FROM ${s}.lease
        WHERE run_id >= $2 COLLATE "C" AND ($3::text IS NULL OR run_id < $3 COLLATE "C") AND run_id > $4 COLLATE "C"
        ORDER BY run_id LIMIT ${PAGE_ROWS})
      SELECT (coalesce(r.worker_id = $5, true) AND coalesce(r.state = $6, true))::text AS listed, r.*
      FROM home, LATERAL (SELECT ${RECORD} FROM page l LEFT JOIN ${s}.fence f ON f.run_id = l.run_id) r
      ORDER BY r.run_id COLLATE "C"`),
    currentFence: reading(`WITH home AS MATERIALIZED (${home})
      SELECT greatest((SELECT fencing_token FROM ${s}.lease WHERE run_id = $2),
        (SELECT fencing_token FROM ${s}.fence WHERE run_id = $2))::text AS fence FROM home`),
  };
}

function writing(text: string): Statement {
  return statement(text, { writes: true });
}

function reading(text: string): Statement {
  return statement(text, { writes: false });
}
