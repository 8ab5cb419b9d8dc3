import { channelOf } from './functions.ts';

/**
 * Many acquires, or many releases, in one statement and one commit. These wait for nobody: a row that somebody else keeps
 * locked is answered with null, as is what only `acquire` can decide, and the call is then made by itself. A run comes
 * once. Rows are locked in the order of their names. What they can wait for is another's new row that is not committed yet,
 * for as long as the statement's `lock_timeout`.
 */
export function batchFunctions(schema: string): string {
  return [acquireMany, releaseMany].map((text) => text(schema)).join('\n');
}

/** A refusal locks and writes nothing. The clock is read behind the locks. */
const acquireMany = (s: string): string => `
    CREATE FUNCTION ${s}.acquire_many(p_runs text[], p_workers text[], p_acquisitions text[], p_ttls double precision[],
      p_floor bigint, p_listened boolean)
    RETURNS TABLE (place bigint, answer text) LANGUAGE plpgsql AS $$
    DECLARE
      v_free text[];
      v_known text[];
    BEGIN
      SELECT array_agg(q.run_id) INTO v_free FROM (
        SELECT l.run_id FROM ${s}.lease l
        WHERE l.run_id = ANY (p_runs) AND (l.released_at IS NOT NULL OR l.expires_at <= clock_timestamp())
        ORDER BY l.run_id FOR UPDATE SKIP LOCKED) q;
      v_known := ARRAY(SELECT l.run_id FROM ${s}.lease l WHERE l.run_id = ANY (p_runs));
      RETURN QUERY
        WITH asked AS MATERIALIZED (
          SELECT * FROM unnest(p_runs, p_workers, p_acquisitions, p_ttls)
            WITH ORDINALITY AS r (run_id, worker_id, acquisition_id, ttl_seconds, place)
        ), granted AS (
          INSERT INTO ${s}.lease AS l
            (run_id, worker_id, fencing_token, acquisition_id, ttl_seconds, acquired_at, expires_at)
            SELECT a.run_id, a.worker_id, greatest(p_floor, f.fencing_token) + 1, a.acquisition_id, a.ttl_seconds,
              clock_timestamp(), clock_timestamp() + ${s}.ttl(a.ttl_seconds)
            FROM asked a LEFT JOIN ${s}.fence f ON f.run_id = a.run_id
            WHERE a.run_id = ANY (v_free) OR a.run_id <> ALL (v_known)
            ORDER BY a.run_id COLLATE "C"
          ON CONFLICT (run_id) DO UPDATE SET worker_id = excluded.worker_id,
            fencing_token = greatest(excluded.fencing_token, l.fencing_token + 1),
            acquisition_id = excluded.acquisition_id, ttl_seconds = excluded.ttl_seconds,
            acquired_at = clock_timestamp(), expires_at = clock_timestamp() + ${s}.ttl(excluded.ttl_seconds),
            released_at = NULL, revoked_at = NULL, revoked_by = NULL, revoked_reason = NULL
            WHERE l.released_at IS NOT NULL OR l.expires_at <= clock_timestamp()
          RETURNING l.run_id, l.fencing_token, l.expires_at
        )
        SELECT a.place, CASE
          WHEN g.run_id IS NOT NULL THEN 'granted ' || g.fencing_token || ' ' || ${s}.microseconds(g.expires_at)
            || CASE WHEN p_listened THEN pg_notify(${channelOf(s)}, a.run_id)::text ELSE '' END
          WHEN l.released_at IS NULL AND l.expires_at > clock_timestamp() AND l.worker_id <> a.worker_id
            THEN ${s}.held(l.fencing_token, l.expires_at - clock_timestamp(), l.worker_id) END
        FROM asked a LEFT JOIN granted g ON g.run_id = a.run_id LEFT JOIN ${s}.lease l ON l.run_id = a.run_id;
    END $$;`;

const releaseMany = (s: string): string => `
    CREATE FUNCTION ${s}.release_many(p_runs text[], p_workers text[], p_acquisitions text[], p_tokens bigint[],
      p_listened boolean)
    RETURNS TABLE (place bigint, answer text) LANGUAGE plpgsql AS $$
    DECLARE
      v_locked text[];
    BEGIN
      SELECT array_agg(q.run_id) INTO v_locked FROM (
        SELECT l.run_id FROM ${s}.lease l WHERE l.run_id = ANY (p_runs) AND l.acquisition_id = ANY (p_acquisitions)
        ORDER BY l.run_id FOR UPDATE SKIP LOCKED) q;
      RETURN QUERY
        WITH asked AS MATERIALIZED (
          SELECT r.place, l.run_id AS held, r.run_id, r.acquisition_id
          FROM unnest(p_runs, p_workers, p_acquisitions, p_tokens)
            WITH ORDINALITY AS r (run_id, worker_id, acquisition_id, fencing_token, place)
          LEFT JOIN ${s}.lease l ON l.run_id = r.run_id AND l.worker_id = r.worker_id
            AND l.acquisition_id = r.acquisition_id AND l.released_at IS NULL
            AND l.fencing_token = coalesce(r.fencing_token, l.fencing_token)
        ), freed AS (
          UPDATE ${s}.lease l SET released_at = clock_timestamp() FROM asked a
          WHERE l.run_id = a.held AND l.acquisition_id = a.acquisition_id AND l.released_at IS NULL
            AND l.run_id = ANY (v_locked)
          RETURNING l.run_id
        )
        SELECT a.place, CASE
          WHEN f.run_id IS NOT NULL
            THEN 'true' || CASE WHEN p_listened THEN pg_notify(${channelOf(s)}, a.run_id)::text ELSE '' END
          WHEN a.held IS NULL THEN 'false' END
        FROM asked a LEFT JOIN freed f ON f.run_id = a.run_id;
    END $$;`;
