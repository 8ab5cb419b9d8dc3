/** The functions that the calls are made of. Their arguments begin with `p_`, their variables with `v_`. */

/** All of them, for a quoted schema. */
export function functions(schema: string): string {
  return [acquire, renew, release, revoke, listen].map((text) => text(schema)).join('\n');
}

/** The row of `meta`, if this is where the store was opened. */
const atHome = (s: string): string => `starts_with(m.marker || '/' || m.tableoid || '/' || ${s}.timeline(), p_home)`;

/** For this transaction: waits are bounded, and the commit is durable before it is answered, whatever the role's default. */
const SETTINGS = `
      v_set := set_config('lock_timeout', p_wait, true);
      IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
        v_set := set_config('synchronous_commit', 'on', true);
      END IF;`;

const notify = (s: string, run: string): string => `pg_notify(${channelOf(s)}, ${run})`;

/** The channel of a schema's changes, as an SQL literal. */
export function channelOf(schema: string): string {
  return `'lessor:${schema.slice(1, -1).replaceAll("'", "''")}'`;
}

/**
 * Looks without a lock first, so that a refusal costs no write; then locks the row, reads the clock and looks again.
 * Take-over never waits for the fence row. A worker's own new acquisition of its live lease does, before it locks the lease
 * row, and moves the fence to itself: what the older acquisition has in flight lands before, and nothing of it after.
 */
const acquire = (s: string): string => `
    CREATE FUNCTION ${s}.acquire(p_home text, p_wait text, p_run text, p_worker text, p_acquisition text,
      p_ttl double precision, p_ttl_us bigint, p_extend boolean,
      OUT status text, OUT holder text, OUT token text, OUT until_us text, OUT wait_us text)
    LANGUAGE plpgsql AS $$
    DECLARE
      v_ttl interval := p_ttl_us * interval '1 microsecond';
      v_set text;
      v_now timestamptz;
      v_until timestamptz;
      v_floor bigint;
      v_listened boolean;
      v_fenced boolean := false;
      v_lease ${s}.lease;
      v_live boolean;
      v_extends boolean;
      v_locked boolean := false;
    BEGIN${SETTINGS}
      SELECT greatest(m.token_floor, f.fencing_token), m.listened_until > clock_timestamp() INTO v_floor, v_listened
        FROM ${s}.meta m LEFT JOIN ${s}.fence f ON f.run_id = p_run WHERE ${atHome(s)};
      IF NOT FOUND THEN PERFORM ${s}.refuse_home(); END IF;
      LOOP
        IF v_locked THEN
          SELECT * INTO v_lease FROM ${s}.lease WHERE run_id = p_run FOR UPDATE;
        ELSE
          SELECT * INTO v_lease FROM ${s}.lease WHERE run_id = p_run;
        END IF;
        v_now := clock_timestamp();
        v_until := v_now + v_ttl;
        IF v_lease.run_id IS NULL THEN
          IF v_floor >= 9007199254740991 THEN
            RAISE EXCEPTION 'The tokens of the run are used up' USING ERRCODE = 'LS002', DETAIL = v_floor::text;
          END IF;
          INSERT INTO ${s}.lease (run_id, worker_id, fencing_token, acquisition_id, ttl_seconds, acquired_at, expires_at)
            VALUES (p_run, p_worker, v_floor + 1, p_acquisition, p_ttl, v_now, v_until)
            ON CONFLICT DO NOTHING RETURNING fencing_token INTO token;
          IF FOUND THEN
            -- It may have waited for another's insertion that was rolled back.
            IF clock_timestamp() > v_now + interval '10 ms' THEN
              v_now := clock_timestamp();
              v_until := v_now + v_ttl;
              UPDATE ${s}.lease SET acquired_at = v_now, expires_at = v_until WHERE run_id = p_run;
            END IF;
            status := 'granted';
            EXIT;
          END IF;
          IF v_locked THEN
            RAISE EXCEPTION 'The run appeared in between: ask again' USING ERRCODE = 'LS003';
          END IF;
          v_locked := true;
          CONTINUE;
        END IF;

        v_live := v_lease.released_at IS NULL AND v_lease.expires_at > v_now;
        v_extends := v_live AND v_lease.worker_id = p_worker
          AND (p_extend OR v_lease.acquisition_id = p_acquisition);
        IF v_live AND NOT v_extends THEN
          status := 'held';
          holder := v_lease.worker_id;
          token := v_lease.fencing_token;
          wait_us := (extract(epoch FROM v_lease.expires_at - v_now) * 1000000)::bigint;
          RETURN;
        END IF;
        IF v_extends AND v_lease.acquisition_id <> p_acquisition AND NOT v_fenced THEN
          -- The fence row comes before the lease row, or two of these wait for each other for ever.
          IF v_locked THEN
            RAISE EXCEPTION 'Another acquisition came between: ask again' USING ERRCODE = 'LS003';
          END IF;
          INSERT INTO ${s}.fence AS f VALUES (p_run, v_lease.fencing_token, p_acquisition)
            ON CONFLICT (run_id) DO UPDATE
            SET fencing_token = excluded.fencing_token, acquisition_id = excluded.acquisition_id
            WHERE f.fencing_token <= excluded.fencing_token;
          v_fenced := true;
        END IF;
        IF NOT v_locked THEN
          v_locked := true;
          CONTINUE;
        END IF;

        IF v_extends THEN
          v_until := greatest(v_lease.expires_at, v_until);
          token := v_lease.fencing_token;
          UPDATE ${s}.lease SET acquisition_id = p_acquisition, ttl_seconds = p_ttl, expires_at = v_until
            WHERE run_id = p_run;
          status := 'extended';
        ELSE
          v_floor := greatest(v_floor, v_lease.fencing_token);
          IF v_floor >= 9007199254740991 THEN
            RAISE EXCEPTION 'The tokens of the run are used up' USING ERRCODE = 'LS002', DETAIL = v_floor::text;
          END IF;
          token := v_floor + 1;
          UPDATE ${s}.lease SET worker_id = p_worker, fencing_token = v_floor + 1, acquisition_id = p_acquisition,
            ttl_seconds = p_ttl, acquired_at = v_now, expires_at = v_until, released_at = NULL,
            revoked_at = NULL, revoked_by = NULL, revoked_reason = NULL WHERE run_id = p_run;
          status := 'granted';
        END IF;
        EXIT;
      END LOOP;
      until_us := (extract(epoch FROM v_until) * 1000000)::bigint;
      IF v_listened THEN v_set := ${notify(s, 'p_run')}; END IF;
    END $$;`;

/**
 * Renews what is live. Rows are locked in the order of their names. One that somebody else has locked is waited for only
 * when told so: otherwise it is answered as blocked, and the others are renewed at once.
 *
 * Answers with one row for all that were renewed until the same moment (`place` 0), and one for each other reference.
 */
const renew = (s: string): string => `
    CREATE FUNCTION ${s}.renew(p_home text, p_wait text, p_runs text[], p_workers text[], p_tokens bigint[],
      p_acquisitions text[], p_ttl double precision, p_ttl_us bigint, p_patient boolean)
    RETURNS TABLE (place bigint, until_us text, blocked boolean, worker text, token text, acquisition text,
      released boolean, revoked boolean)
    LANGUAGE plpgsql AS $$
    DECLARE
      v_set text;
      v_now timestamptz;
      v_until timestamptz;
      v_latest timestamptz;
      v_locked text[];
      v_blocked text[] := '{}';
      v_renewed bigint;
    BEGIN${SETTINGS}
      PERFORM FROM ${s}.meta m WHERE ${atHome(s)};
      IF NOT FOUND THEN PERFORM ${s}.refuse_home(); END IF;
      IF p_patient THEN
        SELECT array_agg(q.run_id), max(q.expires_at) INTO v_locked, v_latest FROM (
          SELECT l.run_id, l.expires_at FROM ${s}.lease l WHERE l.run_id = ANY (p_runs) ORDER BY l.run_id FOR UPDATE) q;
      ELSE
        SELECT array_agg(q.run_id), max(q.expires_at) INTO v_locked, v_latest FROM (
          SELECT l.run_id, l.expires_at FROM ${s}.lease l WHERE l.run_id = ANY (p_runs) ORDER BY l.run_id
          FOR UPDATE SKIP LOCKED) q;
      END IF;
      v_now := clock_timestamp();
      v_until := v_now + p_ttl_us * interval '1 microsecond';
      IF NOT p_patient AND coalesce(cardinality(v_locked), 0) < cardinality(p_runs) THEN
        v_blocked := ARRAY(SELECT l.run_id FROM ${s}.lease l WHERE l.run_id = ANY (p_runs) EXCEPT SELECT unnest(v_locked));
      END IF;

      UPDATE ${s}.lease l SET expires_at = greatest(l.expires_at, v_until), ttl_seconds = p_ttl
        FROM unnest(p_runs, p_workers, p_tokens, p_acquisitions) AS r (run_id, worker_id, fencing_token, acquisition_id)
        WHERE l.run_id = r.run_id AND l.worker_id = r.worker_id AND l.fencing_token = r.fencing_token
          AND l.acquisition_id = r.acquisition_id AND l.released_at IS NULL AND l.expires_at > v_now
          AND l.run_id <> ALL (v_blocked);
      GET DIAGNOSTICS v_renewed = ROW_COUNT;
      RETURN QUERY SELECT 0::bigint, (extract(epoch FROM v_until) * 1000000)::bigint::text, NULL::boolean, NULL, NULL, NULL,
        NULL::boolean, NULL::boolean;
      IF v_renewed = cardinality(p_runs) AND v_latest <= v_until THEN RETURN; END IF;

      RETURN QUERY
        SELECT r.place,
          CASE WHEN l.fencing_token = r.fencing_token AND l.worker_id = r.worker_id AND l.acquisition_id = r.acquisition_id
            AND l.released_at IS NULL AND l.expires_at > v_now AND l.run_id <> ALL (v_blocked)
            THEN (extract(epoch FROM l.expires_at) * 1000000)::bigint::text END,
          l.run_id = ANY (v_blocked), l.worker_id, l.fencing_token::text, l.acquisition_id,
          l.released_at IS NOT NULL, l.revoked_at IS NOT NULL
        FROM unnest(p_runs, p_workers, p_tokens, p_acquisitions)
          WITH ORDINALITY AS r (run_id, worker_id, fencing_token, acquisition_id, place)
        LEFT JOIN ${s}.lease l ON l.run_id = r.run_id;
    END $$;`;

const release = (s: string): string => `
    CREATE FUNCTION ${s}.release(p_home text, p_wait text, p_run text, p_worker text, p_acquisition text, p_token bigint,
      OUT released boolean)
    LANGUAGE plpgsql AS $$
    DECLARE
      v_set text;
      v_listened boolean;
    BEGIN${SETTINGS}
      SELECT m.listened_until > clock_timestamp() INTO v_listened FROM ${s}.meta m WHERE ${atHome(s)};
      IF NOT FOUND THEN PERFORM ${s}.refuse_home(); END IF;
      UPDATE ${s}.lease SET released_at = clock_timestamp()
        WHERE run_id = p_run AND worker_id = p_worker AND acquisition_id = p_acquisition AND released_at IS NULL
          AND fencing_token = coalesce(p_token, fencing_token);
      released := FOUND;
      IF released AND v_listened THEN v_set := ${notify(s, 'p_run')}; END IF;
    END $$;`;

const revoke = (s: string): string => `
    CREATE FUNCTION ${s}.revoke(p_home text, p_wait text, p_run text, p_by text, p_reason text,
      OUT worker text, OUT token text, OUT until_us text, OUT ttl text)
    LANGUAGE plpgsql AS $$
    DECLARE
      v_set text;
      v_listened boolean;
    BEGIN${SETTINGS}
      SELECT m.listened_until > clock_timestamp() INTO v_listened FROM ${s}.meta m WHERE ${atHome(s)};
      IF NOT FOUND THEN PERFORM ${s}.refuse_home(); END IF;
      UPDATE ${s}.lease SET released_at = clock_timestamp(), revoked_at = clock_timestamp(), revoked_by = p_by,
        revoked_reason = p_reason
        WHERE run_id = p_run AND released_at IS NULL
        RETURNING worker_id, fencing_token, (extract(epoch FROM expires_at) * 1000000)::bigint, ttl_seconds
        INTO worker, token, until_us, ttl;
      IF FOUND AND v_listened THEN v_set := ${notify(s, 'p_run')}; END IF;
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
