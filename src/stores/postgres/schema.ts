/**
 * What a schema holds: tables, what guards them against hand-written SQL, and functions that statements call.
 */
import { batchFunctions } from './batch-functions.ts';
import { fenceFunctions } from './fence-functions.ts';
import { functions } from './functions.ts';

/** The version that this library reads and writes. */
export const SCHEMA_VERSION = 1;

/** The statements that lead from version `index` to `index + 1`, for a quoted schema. Ones that were published never change. */
export const MIGRATIONS: ReadonlyArray<(schema: string) => string> = [
  (schema) =>
    [
      tables(schema),
      guards(schema),
      home(schema),
      functions(schema),
      batchFunctions(schema),
      fenceFunctions(schema),
      firstRow(schema),
    ].join('\n'),
];

/**
 * The lease row stays after release, for its token. The fence row is another one, so that a long fenced transaction, which
 * keeps it locked, never blocks a renewal. Names have the collation "C": compared by their bytes, whatever the database's.
 */
function tables(s: string): string {
  return `
    CREATE TABLE ${s}.meta (
      one boolean PRIMARY KEY DEFAULT true CHECK (one),
      version integer NOT NULL,
      marker text NOT NULL,
      settled text NOT NULL,
      token_floor bigint NOT NULL DEFAULT 0 CHECK (token_floor BETWEEN 0 AND 9007199254740991),
      listened_until timestamptz NOT NULL DEFAULT '-infinity'
    );
    COMMENT ON COLUMN ${s}.meta.marker IS 'Random. Another one means that the leases of before are gone.';
    COMMENT ON COLUMN ${s}.meta.settled IS 'The server, table and timeline for which all fences are known to be right.';
    COMMENT ON COLUMN ${s}.meta.token_floor IS 'Every new token is above it. Raised by raise_fences() after a restore.';
    COMMENT ON COLUMN ${s}.meta.listened_until IS 'Until then somebody may listen for changes.';

    CREATE TABLE ${s}.lease (
      run_id text COLLATE "C" PRIMARY KEY,
      worker_id text COLLATE "C" NOT NULL,
      fencing_token bigint NOT NULL CHECK (fencing_token BETWEEN 1 AND 9007199254740991),
      acquisition_id text COLLATE "C" NOT NULL,
      ttl_seconds double precision NOT NULL,
      acquired_at timestamptz NOT NULL,
      expires_at timestamptz NOT NULL,
      released_at timestamptz,
      revoked_at timestamptz,
      revoked_by text,
      revoked_reason text
    ) WITH (fillfactor = 70);
    COMMENT ON TABLE ${s}.lease IS 'The newest lease of each run. Kept after its release, for its token.';

    CREATE TABLE ${s}.fence (
      run_id text COLLATE "C" PRIMARY KEY,
      fencing_token bigint NOT NULL CHECK (fencing_token BETWEEN 1 AND 9007199254740991),
      acquisition_id text COLLATE "C" NOT NULL
    ) WITH (fillfactor = 70);
    COMMENT ON TABLE ${s}.fence IS 'The highest token that a fenced access of the run has shown.';`;
}

/**
 * Whoever deletes a row or lowers a token lets an old one be issued again: refused, also to a person at a prompt. An update
 * of other columns asks no trigger: asking costs a release a tenth of the server's time.
 */
function guards(s: string): string {
  const refusals = [
    ['lease', 'fencing_token, run_id', 'NEW.fencing_token < OLD.fencing_token OR NEW.run_id <> OLD.run_id'],
    ['fence', 'fencing_token, run_id', 'NEW.fencing_token < OLD.fencing_token OR NEW.run_id <> OLD.run_id'],
    [
      'meta',
      'token_floor, marker, version',
      'NEW.token_floor < OLD.token_floor OR NEW.marker <> OLD.marker OR NEW.version < OLD.version',
    ],
  ];
  const triggers = refusals.map(
    ([table, columns, lowered]) => `
    CREATE TRIGGER keep_rows BEFORE DELETE ON ${s}.${table} FOR EACH ROW EXECUTE FUNCTION ${s}.refuse();
    CREATE TRIGGER keep_table BEFORE TRUNCATE ON ${s}.${table} FOR EACH STATEMENT EXECUTE FUNCTION ${s}.refuse();
    CREATE TRIGGER keep_tokens BEFORE UPDATE OF ${columns} ON ${s}.${table} FOR EACH ROW WHEN (${lowered})
      EXECUTE FUNCTION ${s}.refuse();`,
  );
  return `
    CREATE FUNCTION ${s}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION '% on %.% is refused: rows are kept and tokens never go down, or an old one would be issued again',
        TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
    END $$;
    ${triggers.join('')}`;
}

/** Where the rows live: a promoted standby has another timeline, a restored dump another table, a new schema another marker. */
function home(s: string): string {
  return `
    DO $do$
    BEGIN
      PERFORM pg_walfile_name(pg_current_wal_lsn());
      CREATE FUNCTION ${s}.timeline() RETURNS text LANGUAGE sql AS
        $$ SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) $$;
    EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN
      CREATE FUNCTION ${s}.timeline() RETURNS text LANGUAGE sql AS $$ SELECT ''::text $$;
    END $do$;

    CREATE FUNCTION ${s}.place() RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
      v_system text := '';
    BEGIN
      BEGIN
        v_system := (SELECT system_identifier FROM pg_control_system());
      EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN
        NULL;
      END;
      RETURN v_system || '/' || '${s.replaceAll("'", "''")}.meta'::regclass::oid || '/' || ${s}.timeline();
    END $$;

    CREATE FUNCTION ${s}.raise_fences(p_by bigint) RETURNS bigint LANGUAGE sql AS $$
      UPDATE ${s}.meta SET settled = ${s}.place(), token_floor = p_by + greatest(token_floor,
        (SELECT max(fencing_token) FROM ${s}.lease), (SELECT max(fencing_token) FROM ${s}.fence))
      WHERE p_by >= 0 RETURNING token_floor
    $$;
    COMMENT ON FUNCTION ${s}.raise_fences(bigint) IS
      'After a restore or a failover: every new token is above all that are kept plus this many.';`;
}

function firstRow(s: string): string {
  return `
    INSERT INTO ${s}.meta (version, marker, settled) VALUES (1, gen_random_uuid(), ${s}.place());`;
}
