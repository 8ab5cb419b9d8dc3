/**
 * The fence in SQL, for this store and for any other client: `SELECT lessor.fence('run', 'worker', 7, 'acquisition')` as the
 * first statement of a transaction refuses an older worker, and makes a newer one wait until this transaction has ended.
 *
 * The fence row is locked first and the lease row looked at afterwards, without a lock: so a long transaction under a fence
 * keeps neither renewals nor a take-over waiting, and the newer worker's first fenced access waits and then sees its data.
 */
export function fenceFunctions(schema: string): string {
  return [documents, refuse, look, raise, fence, guardRow, raiseAll, openDocuments, commitDocuments]
    .map((text) => text(schema))
    .join('\n');
}

const documents = (s: string): string => `
    CREATE TABLE ${s}.document (
      run_id text COLLATE "C" PRIMARY KEY,
      version bigint NOT NULL CHECK (version > 0),
      json text NOT NULL
    );
    COMMENT ON TABLE ${s}.document IS 'The documents that sessions read and write.';`;

/** Says why the lease is lost, in the words of the library. */
const refuse = (s: string): string => `
    CREATE FUNCTION ${s}.refuse_lease(p_run text, p_worker text, p_token bigint, p_acquisition text) RETURNS void
    LANGUAGE plpgsql AS $$
    DECLARE
      v_lease ${s}.lease;
      v_reason text;
    BEGIN
      SELECT * INTO v_lease FROM ${s}.lease WHERE run_id = p_run;
      v_reason := CASE
        WHEN v_lease.run_id IS NULL OR p_token IS NULL OR v_lease.fencing_token < p_token THEN 'unknown'
        WHEN v_lease.fencing_token > p_token THEN 'superseded'
        WHEN v_lease.worker_id <> coalesce(p_worker, v_lease.worker_id) THEN 'unknown'
        WHEN v_lease.acquisition_id <> coalesce(p_acquisition, v_lease.acquisition_id) THEN 'superseded'
        WHEN v_lease.revoked_at IS NOT NULL THEN 'revoked'
        WHEN v_lease.released_at IS NOT NULL THEN 'released'
        ELSE 'superseded' END;
      RAISE EXCEPTION 'Lost the lease on run "%" (token %): %', p_run, p_token, v_reason
        USING ERRCODE = 'LS010', DETAIL = v_reason, HINT = p_run;
    END $$;`;

/**
 * A fresh look at the lease: still the newest, not released. Expiry alone refuses nothing.
 *
 * In a transaction with one snapshot a plain read may be old. There the row is locked in a subtransaction, which fails when
 * it is newer than the snapshot, and rolled back at once, so that the lock is held no longer.
 */
const look = (s: string): string => `
    CREATE FUNCTION ${s}.check_lease(p_run text, p_worker text, p_token bigint, p_acquisition text) RETURNS void
    LANGUAGE plpgsql AS $$
    BEGIN
      IF current_setting('transaction_isolation') <> 'read committed' THEN
        BEGIN
          PERFORM FROM ${s}.lease WHERE run_id = p_run FOR NO KEY UPDATE;
          RAISE EXCEPTION USING ERRCODE = 'LS011';
        EXCEPTION WHEN SQLSTATE 'LS011' THEN
          NULL;
        END;
      END IF;
      PERFORM FROM ${s}.lease WHERE run_id = p_run AND fencing_token = p_token AND released_at IS NULL
        AND worker_id = coalesce(p_worker, worker_id) AND acquisition_id = coalesce(p_acquisition, acquisition_id);
      IF NOT FOUND THEN PERFORM ${s}.refuse_lease(p_run, p_worker, p_token, p_acquisition); END IF;
    END $$;`;

/**
 * Raises the fence to this token, or writes it again where it stands there, and then checks the lease. Null is not compared.
 *
 * It is written even when nothing changes: a newer worker's transaction whose one snapshot is older than this one's end is
 * refused by that, and not only kept waiting. The wait is bounded, by the caller's own `lock_timeout` where there is one.
 */
const raise = (s: string): string => `
    CREATE FUNCTION ${s}.raise_fence(p_run text, p_worker text, p_token bigint, p_acquisition text) RETURNS void
    LANGUAGE plpgsql AS $$
    DECLARE
      v_acquisition text := p_acquisition;
      v_stands boolean := false;
      v_is_bounded boolean := current_setting('lock_timeout') <> '0';
      v_set text;
    BEGIN
      IF NOT v_is_bounded THEN v_set := set_config('lock_timeout', '5s', true); END IF;
      IF p_acquisition IS NULL THEN
        UPDATE ${s}.fence SET acquisition_id = acquisition_id WHERE run_id = p_run AND fencing_token = p_token
          RETURNING acquisition_id INTO v_acquisition;
        v_stands := FOUND;
        IF NOT v_stands THEN
          SELECT acquisition_id INTO v_acquisition FROM ${s}.lease WHERE run_id = p_run AND fencing_token = p_token;
          IF NOT FOUND THEN PERFORM ${s}.refuse_lease(p_run, p_worker, p_token, p_acquisition); END IF;
        END IF;
      END IF;
      IF NOT v_stands THEN
        INSERT INTO ${s}.fence AS f VALUES (p_run, p_token, v_acquisition) ON CONFLICT (run_id) DO UPDATE
          SET fencing_token = excluded.fencing_token, acquisition_id = excluded.acquisition_id
          WHERE f.fencing_token < excluded.fencing_token
            OR f.fencing_token = excluded.fencing_token AND f.acquisition_id = excluded.acquisition_id;
        IF NOT FOUND THEN PERFORM ${s}.refuse_lease(p_run, p_worker, p_token, p_acquisition); END IF;
      END IF;
      IF current_setting('transaction_isolation') = 'read committed' AND EXISTS (SELECT FROM ${s}.lease
        WHERE run_id = p_run AND fencing_token = p_token AND released_at IS NULL AND acquisition_id = v_acquisition
          AND worker_id = coalesce(p_worker, worker_id))
      THEN
        NULL;
      ELSE
        PERFORM ${s}.check_lease(p_run, p_worker, p_token, v_acquisition);
      END IF;
      IF NOT v_is_bounded THEN v_set := set_config('lock_timeout', '0', true); END IF;
    END $$;`;

/** For the user's own transactions, from any client. The library's own calls `raise_fence` where it knows of one. */
const fence = (s: string): string => `
    CREATE FUNCTION ${s}.fence(p_run text, p_worker text, p_token bigint, p_acquisition text DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql AS $$
    BEGIN
      -- A statement that is a transaction of its own, as one typed at a prompt, has one time for both, and its lock would be
      -- gone before the write came. Several statements that were sent as one text share it too, and are a transaction.
      IF transaction_timestamp() = statement_timestamp() AND current_query() !~ ';[[:space:]]*[^[:space:]]' THEN
        RAISE EXCEPTION 'A fence holds to the end of a transaction: begin one first' USING ERRCODE = 'LS014';
      END IF;
      IF p_token IS NULL THEN
        RAISE EXCEPTION 'A fence needs a fencing token' USING ERRCODE = 'null_value_not_allowed';
      END IF;
      PERFORM ${s}.raise_fence(p_run, p_worker, p_token, p_acquisition);
    END $$;
    COMMENT ON FUNCTION ${s}.fence(text, text, bigint, text) IS
      'First statement of a transaction that writes under a lease: refuses an older worker, locks out both until it ends.';`;

/**
 * A row of a fenced table. A run that was never leased takes rows without a token. A fence row that this very transaction
 * has written is proof enough: whoever took over since waits for this transaction. The setting is a hint alone, of where it
 * is worth looking for one, so that the first row of a run costs a statement less.
 */
const guardRow = (s: string): string => `
    CREATE FUNCTION ${s}.guard_row(p_run text, p_token bigint) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      v_hint text := current_setting('lessor.fenced', true);
    BEGIN
      IF v_hint = p_run THEN
        PERFORM FROM ${s}.fence WHERE run_id = p_run AND fencing_token = p_token
          AND xmin = pg_current_xact_id_if_assigned()::xid;
        IF FOUND THEN RETURN; END IF;
      END IF;
      IF p_token IS NULL THEN
        PERFORM FROM ${s}.lease WHERE run_id = p_run;
        IF NOT FOUND THEN RETURN; END IF;
        RAISE EXCEPTION 'Run "%" is leased: a write of it needs the fencing token of its newest lease', p_run
          USING ERRCODE = 'LS012', HINT = p_run;
      END IF;
      PERFORM ${s}.raise_fence(p_run, NULL, p_token, NULL);
      v_hint := set_config('lessor.fenced', p_run, true);
    END $$;`;

const FENCES = 'p_fenced text[], p_workers text[], p_tokens bigint[], p_acquisitions text[]';
const PASS = 'p_fenced, p_workers, p_tokens, p_acquisitions';

/** In one order everywhere, so that no two transactions wait for each other. */
const raiseAll = (s: string): string => `
    CREATE FUNCTION ${s}.raise_all(${FENCES}, p_runs text[], p_unfenced boolean, p_lock boolean) RETURNS void
    LANGUAGE plpgsql AS $$
    DECLARE
      v record;
    BEGIN
      FOR v IN SELECT * FROM unnest(${PASS}) AS f (run_id, worker_id, token, acquisition_id)
        ORDER BY run_id COLLATE "C"
      LOOP
        -- A fence that stands here already has outlasted every older write: opening need not lock it.
        IF p_lock OR NOT EXISTS (SELECT FROM ${s}.fence f WHERE f.run_id = v.run_id AND f.fencing_token = v.token
          AND f.acquisition_id = v.acquisition_id)
        THEN
          PERFORM ${s}.raise_fence(v.run_id, v.worker_id, v.token, v.acquisition_id);
        ELSE
          PERFORM ${s}.check_lease(v.run_id, v.worker_id, v.token, v.acquisition_id);
        END IF;
      END LOOP;
      IF p_unfenced THEN RETURN; END IF;
      FOR v IN SELECT r.run_id FROM unnest(p_runs) AS r (run_id) JOIN ${s}.lease l ON l.run_id = r.run_id
        WHERE r.run_id <> ALL (p_fenced) LIMIT 1
      LOOP
        RAISE EXCEPTION 'Run "%" is leased and has no fence here', v.run_id USING ERRCODE = 'LS012', HINT = v.run_id;
      END LOOP;
    END $$;`;

const openDocuments = (s: string): string => `
    CREATE FUNCTION ${s}.open_documents(${FENCES}, p_runs text[], p_unfenced boolean)
    RETURNS TABLE (version text, json text) LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM ${s}.raise_all(${PASS}, p_runs, p_unfenced, false);
      RETURN QUERY SELECT coalesce(d.version, 0)::text, coalesce(d.json, '{}')
        FROM unnest(p_runs) WITH ORDINALITY AS r (run_id, place) LEFT JOIN ${s}.document d ON d.run_id = r.run_id
        ORDER BY r.place;
    END $$;`;

/** An absent document cannot be locked: whoever counts on its absence takes a lock by the hash of its name instead. */
const commitDocuments = (s: string): string => `
    CREATE FUNCTION ${s}.commit_documents(${FENCES}, p_runs text[], p_unfenced boolean,
      p_expected text[], p_versions bigint[], p_written text[], p_json text[])
    RETURNS boolean LANGUAGE plpgsql AS $$
    DECLARE
      v_changed text;
      v_count bigint;
    BEGIN
      PERFORM ${s}.raise_all(${PASS}, p_runs, p_unfenced, true);
      PERFORM pg_advisory_xact_lock(k) FROM (SELECT DISTINCT hashtextextended(e.run_id, 0) AS k
        FROM unnest(p_expected, p_versions) AS e (run_id, version) WHERE e.version = 0 ORDER BY 1) AS q;
      PERFORM FROM ${s}.document WHERE run_id = ANY (p_expected) ORDER BY run_id FOR UPDATE;
      SELECT e.run_id INTO v_changed FROM unnest(p_expected, p_versions) AS e (run_id, version)
        LEFT JOIN ${s}.document d ON d.run_id = e.run_id WHERE coalesce(d.version, 0) <> e.version LIMIT 1;
      IF NOT FOUND THEN
        INSERT INTO ${s}.document AS d (run_id, version, json)
          SELECT w.run_id, e.version + 1, w.json FROM unnest(p_written, p_json) AS w (run_id, json)
          JOIN unnest(p_expected, p_versions) AS e (run_id, version) ON e.run_id = w.run_id ORDER BY w.run_id COLLATE "C"
          ON CONFLICT (run_id) DO UPDATE SET version = excluded.version, json = excluded.json
          WHERE d.version = excluded.version - 1;
        GET DIAGNOSTICS v_count = ROW_COUNT;
        IF v_count = cardinality(p_written) THEN RETURN true; END IF;
        v_changed := p_written[1];
      END IF;
      RAISE EXCEPTION 'Run "%" has changed', v_changed USING ERRCODE = 'LS013', HINT = v_changed;
    END $$;`;
