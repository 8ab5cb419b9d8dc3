/** The functions that the statements call. Their arguments begin with `p_`, their variables with `v_`. */

/** All of them, for a quoted schema. */
export function functions(schema: string): string {
  return [small, acquire, renew, listen].map((text) => text(schema)).join('\n');
}

/** The channel of a schema's changes, as an SQL literal. */
export function channelOf(schema: string): string {
  return `'${channelName(schema).replaceAll("'", "''")}'`;
}

/** @param schema - quoted. */
export function channelName(schema: string): string {
  return `lessor:${schema.slice(1, -1)}`;
}

/** The pieces of the others. */
const small = (s: string): string => `
    CREATE FUNCTION ${s}.ttl(p_seconds double precision) RETURNS interval LANGUAGE sql IMMUTABLE AS
      $$ SELECT make_interval(secs => ceil(p_seconds * 1000000) / 1000000) $$;

    CREATE FUNCTION ${s}.microseconds(p_at timestamptz) RETURNS text LANGUAGE sql STABLE AS
      $$ SELECT (extract(epoch FROM p_at) * 1000000)::bigint::text $$;

    CREATE FUNCTION ${s}.held(p_token bigint, p_wait interval, p_worker text) RETURNS text LANGUAGE sql STABLE AS
      $$ SELECT 'held ' || p_token || ' ' || (extract(epoch FROM p_wait) * 1000000)::bigint || ' ' || p_worker $$;

    CREATE FUNCTION ${s}.outrun() RETURNS text LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION 'Another transaction came between: ask again' USING ERRCODE = 'LS003';
    END $$;

    CREATE FUNCTION ${s}.settings(p_wait text) RETURNS text LANGUAGE sql AS $$
      SELECT set_config('lock_timeout', p_wait, true) || CASE
        WHEN current_setting('synchronous_commit') IN ('on', 'remote_apply') THEN ''
        ELSE set_config('synchronous_commit', 'on', true) END
    $$;`;

/**
 * The acquires that the statement itself leaves open: a worker's own live lease, and a row that changed under the look. The
 * statement tells whether it has locked the lease row.
 *
 * A worker's new acquisition of its live lease takes the fence row before the lease row, so that it waits for the older
 * acquisition's fenced transaction and no renewal waits with it. What that has in flight lands before, nothing after.
 */
const acquire = (s: string): string => `
    CREATE FUNCTION ${s}.acquire(p_run text, p_worker text, p_acquisition text, p_ttl double precision, p_extend boolean,
      p_floor bigint, p_locked boolean)
    RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
      v_ttl interval := ${s}.ttl(p_ttl);
      v_fenced boolean := false;
      v_now timestamptz;
      v_lease ${s}.lease;
      v_live boolean;
    BEGIN
      LOOP
        IF p_locked THEN
          SELECT * INTO v_lease FROM ${s}.lease WHERE run_id = p_run FOR UPDATE;
        ELSE
          SELECT * INTO v_lease FROM ${s}.lease WHERE run_id = p_run;
        END IF;
        v_now := clock_timestamp();
        v_live := v_lease.released_at IS NULL AND v_lease.expires_at > v_now;
        IF v_lease.run_id IS NULL THEN
          PERFORM ${s}.outrun();
        ELSIF v_live AND (v_lease.worker_id <> p_worker OR NOT p_extend AND v_lease.acquisition_id <> p_acquisition) THEN
          RETURN ${s}.held(v_lease.fencing_token, v_lease.expires_at - v_now, v_lease.worker_id);
        ELSIF v_live AND v_lease.acquisition_id <> p_acquisition AND NOT v_fenced THEN
          -- With the lease row first, two of these would wait for each other.
          IF p_locked THEN PERFORM ${s}.outrun(); END IF;
          INSERT INTO ${s}.fence AS f VALUES (p_run, v_lease.fencing_token, p_acquisition)
            ON CONFLICT (run_id) DO UPDATE
            SET fencing_token = excluded.fencing_token, acquisition_id = excluded.acquisition_id
            WHERE f.fencing_token <= excluded.fencing_token;
          v_fenced := true;
        END IF;
        EXIT WHEN p_locked;
        p_locked := true;
      END LOOP;

      IF v_live THEN
        UPDATE ${s}.lease SET acquisition_id = p_acquisition, ttl_seconds = p_ttl,
          expires_at = greatest(expires_at, v_now + v_ttl)
          WHERE run_id = p_run RETURNING * INTO v_lease;
        RETURN 'extended ' || v_lease.fencing_token || ' ' || ${s}.microseconds(v_lease.expires_at);
      END IF;
      UPDATE ${s}.lease SET worker_id = p_worker, fencing_token = greatest(fencing_token, p_floor) + 1,
        acquisition_id = p_acquisition, ttl_seconds = p_ttl, acquired_at = v_now, expires_at = v_now + v_ttl,
        released_at = NULL, revoked_at = NULL, revoked_by = NULL, revoked_reason = NULL
        WHERE run_id = p_run RETURNING * INTO v_lease;
      RETURN 'granted ' || v_lease.fencing_token || ' ' || ${s}.microseconds(v_lease.expires_at);
    END $$;`;

/**
 * Renews what is live. Rows are locked in the order of their names. One that somebody else has locked is waited for only
 * when told so: otherwise it is answered as blocked, and the others are renewed at once.
 *
 * Answers with one row for all that were renewed until the same moment (`place` 0), and one for each other reference.
 */
const renew = (s: string): string => `
    CREATE FUNCTION ${s}.renew(p_runs text[], p_workers text[], p_tokens bigint[], p_acquisitions text[],
      p_ttl double precision, p_patient boolean)
    RETURNS TABLE (place bigint, until_us text, blocked boolean, worker text, token text, acquisition text,
      released boolean, revoked boolean)
    LANGUAGE plpgsql AS $$
    DECLARE
      v_now timestamptz;
      v_until timestamptz;
      v_latest timestamptz;
      v_locked text[];
      v_blocked text[] := '{}';
      v_renewed bigint;
    BEGIN
      IF p_patient THEN
        SELECT array_agg(q.run_id), max(q.expires_at) INTO v_locked, v_latest FROM (
          SELECT l.run_id, l.expires_at FROM ${s}.lease l WHERE l.run_id = ANY (p_runs) ORDER BY l.run_id FOR UPDATE) q;
      ELSE
        SELECT array_agg(q.run_id), max(q.expires_at) INTO v_locked, v_latest FROM (
          SELECT l.run_id, l.expires_at FROM ${s}.lease l WHERE l.run_id = ANY (p_runs) ORDER BY l.run_id
          FOR UPDATE SKIP LOCKED) q;
      END IF;
      v_now := clock_timestamp();
      v_until := v_now + ${s}.ttl(p_ttl);
      IF NOT p_patient AND coalesce(cardinality(v_locked), 0) < cardinality(p_runs) THEN
        v_blocked := ARRAY(SELECT l.run_id FROM ${s}.lease l WHERE l.run_id = ANY (p_runs) EXCEPT SELECT unnest(v_locked));
      END IF;

      UPDATE ${s}.lease l SET expires_at = greatest(l.expires_at, v_until), ttl_seconds = p_ttl
        FROM unnest(p_runs, p_workers, p_tokens, p_acquisitions) AS r (run_id, worker_id, fencing_token, acquisition_id)
        WHERE l.run_id = r.run_id AND l.worker_id = r.worker_id AND l.fencing_token = r.fencing_token
          AND l.acquisition_id = r.acquisition_id AND l.released_at IS NULL AND l.expires_at > v_now
          AND l.run_id <> ALL (v_blocked);
      GET DIAGNOSTICS v_renewed = ROW_COUNT;
      RETURN QUERY SELECT 0::bigint, ${s}.microseconds(v_until), NULL::boolean, NULL, NULL, NULL,
        NULL::boolean, NULL::boolean;
      IF v_renewed = cardinality(p_runs) AND v_latest <= v_until THEN RETURN; END IF;

      RETURN QUERY
        SELECT r.place,
          CASE WHEN l.fencing_token = r.fencing_token AND l.worker_id = r.worker_id AND l.acquisition_id = r.acquisition_id
            AND l.released_at IS NULL AND l.expires_at > v_now AND l.run_id <> ALL (v_blocked)
            THEN ${s}.microseconds(l.expires_at) END,
          l.run_id = ANY (v_blocked), l.worker_id, l.fencing_token::text, l.acquisition_id,
          l.released_at IS NOT NULL, l.revoked_at IS NOT NULL
        FROM unnest(p_runs, p_workers, p_tokens, p_acquisitions)
          WITH ORDINALITY AS r (run_id, worker_id, fencing_token, acquisition_id, place)
        LEFT JOIN ${s}.lease l ON l.run_id = r.run_id;
    END $$;`;

/**
 * Says that somebody listens, for some minutes. Without a listener nothing is notified: PostgreSQL lets the commits of
 * notifying transactions through one at a time.
 */
const listen = (s: string): string => `
    CREATE FUNCTION ${s}.listen(p_seconds double precision) RETURNS void LANGUAGE sql AS $$
      UPDATE ${s}.meta SET listened_until = clock_timestamp() + make_interval(secs => p_seconds)
        WHERE listened_until < clock_timestamp() + make_interval(secs => p_seconds / 2)
    $$;`;
