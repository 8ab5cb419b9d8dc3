/** Errors in what runs inside PostgreSQL and Redis. @type {readonly import('./mutant.mjs').Mutant[]} */
export const databaseMutants = [
  ...of('the PostgreSQL store keeps ', 'test/stores/postgres.test.ts', [
    {
      name: 'PostgreSQL: a renewal does not compare the acquisition',
      property: 'B5',
      file: 'src/stores/postgres/functions.ts',
      from: `          AND l.acquisition_id = r.acquisition_id AND l.released_at IS NULL AND l.expires_at > v_now
          AND l.run_id <> ALL (v_blocked);`,
      to: `          AND l.released_at IS NULL AND l.expires_at > v_now
          AND l.run_id <> ALL (v_blocked);`,
    },
    {
      name: 'PostgreSQL: a renewal revives',
      property: 'B5',
      file: 'src/stores/postgres/functions.ts',
      from: `AND l.acquisition_id = r.acquisition_id AND l.released_at IS NULL AND l.expires_at > v_now
          AND l.run_id <> ALL (v_blocked);`,
      to: `AND l.acquisition_id = r.acquisition_id AND l.released_at IS NULL
          AND l.run_id <> ALL (v_blocked);`,
    },
    {
      name: 'PostgreSQL: a renewal shortens',
      property: 'B5',
      file: 'src/stores/postgres/functions.ts',
      from: 'SET expires_at = greatest(l.expires_at, v_until)',
      to: 'SET expires_at = v_until',
    },
    {
      name: 'PostgreSQL: a release does not compare the acquisition',
      property: 'B6',
      file: 'src/stores/postgres/statements.ts',
      from: 'l.worker_id = $2 AND l.acquisition_id = $3 AND l.released_at IS NULL',
      to: 'l.worker_id = $2 AND $3::text IS NOT NULL AND l.released_at IS NULL',
    },
    {
      name: 'PostgreSQL: a repeated acquire is held up by itself',
      property: 'B12',
      file: 'src/stores/postgres/statements.ts',
      from: 'NOT $5::boolean AND acquisition_id <> $3)',
      to: 'NOT $5::boolean)',
    },
    {
      name: 'PostgreSQL: a repeated acquire is answered and not extended',
      property: 'B12',
      file: 'src/stores/postgres/functions.ts',
      from: 'expires_at = greatest(expires_at, v_now + v_ttl)',
      to: 'expires_at = expires_at',
    },
    {
      name: 'PostgreSQL: a ttl is rounded down',
      property: 'B8',
      file: 'src/stores/postgres/functions.ts',
      from: 'ceil(p_seconds * 1000000) / 1000000',
      to: 'floor(p_seconds * 1000) / 1000',
    },
  ]),
  ...of('', 'test/stores/postgres-locks.test.ts', [
    {
      name: 'PostgreSQL: a token is above the lease row alone',
      property: 'B2',
      file: 'src/stores/postgres/statements.ts',
      from: 'greatest(m.token_floor, f.fencing_token) AS floor',
      to: 'm.token_floor AS floor',
    },
    {
      name: 'PostgreSQL: a renewal reads the clock before it has the row',
      property: 'PG1',
      file: 'src/stores/postgres/functions.ts',
      from: `FOR UPDATE SKIP LOCKED) q;
      END IF;
      v_now := clock_timestamp();`,
      to: `FOR UPDATE SKIP LOCKED) q;
      END IF;
      v_now := statement_timestamp();`,
    },
  ]),
  ...of('', 'test/stores/postgres-failures.test.ts', [
    {
      name: 'PostgreSQL: a grant is as durable as the role has it',
      property: 'ST1',
      file: 'src/stores/postgres/functions.ts',
      from: "ELSE set_config('synchronous_commit', 'on', true) END",
      to: "ELSE '' END",
    },
    {
      name: 'PostgreSQL: leases that were made anew are taken for the old ones',
      property: 'B10',
      file: 'src/stores/postgres/statements.ts',
      from: '${placeOf(schema)}, ${quote(home)})`;',
      to: '${placeOf(schema)}, ${quote(home)}) IS NOT NULL`;',
    },
  ]),
  ...of('', 'test/session/postgres-session.test.ts', [
    {
      name: 'PostgreSQL: a commit does not look at what has changed',
      property: 'B24',
      file: 'src/stores/postgres/fence-functions.ts',
      from: 'WHERE coalesce(d.version, 0) <> e.version LIMIT 1;',
      to: 'WHERE coalesce(d.version, 0) < e.version LIMIT 1;',
    },
  ]),
  ...of('', 'test/stores/postgres-turns.test.ts', [
    {
      name: 'PostgreSQL: of many acquires each token is above its lease row alone',
      property: 'B2',
      file: 'src/stores/postgres/batch-functions.ts',
      from: 'greatest(p_floor, f.fencing_token) + 1',
      to: 'p_floor + 1',
    },
    {
      name: 'PostgreSQL: of many releases none compares the token',
      property: 'B6',
      file: 'src/stores/postgres/batch-functions.ts',
      from: 'AND l.fencing_token = coalesce(r.fencing_token, l.fencing_token)',
      to: 'AND coalesce(r.fencing_token, l.fencing_token) > 0',
    },
  ]),
  ...of('', 'test/fence/postgres.test.ts', [
    {
      name: 'PostgreSQL: the lease row is not checked',
      property: 'B17',
      file: 'src/stores/postgres/fence-functions.ts',
      from: '        PERFORM ${s}.check_lease(p_run, p_worker, p_token, v_acquisition);\n      END IF;\n      IF NOT v_is',
      to: '        NULL;\n      END IF;\n      IF NOT v_is',
    },
    {
      name: 'PostgreSQL: a re-acquire does not wait for the open transaction',
      property: 'B4',
      file: 'src/stores/postgres/functions.ts',
      from: 'ELSIF v_live AND v_lease.acquisition_id <> p_acquisition AND NOT v_fenced THEN',
      to: 'ELSIF false THEN',
    },
    {
      name: 'PostgreSQL: an equal token passes the fence with any acquisition',
      property: 'TK14',
      file: 'src/stores/postgres/fence-functions.ts',
      from: 'OR f.fencing_token = excluded.fencing_token AND f.acquisition_id = excluded.acquisition_id;',
      to: 'OR f.fencing_token = excluded.fencing_token;',
    },
    {
      name: 'PostgreSQL: a released lease passes the fence',
      property: 'B19',
      file: 'src/stores/postgres/fence-functions.ts',
      from: 'WHERE run_id = p_run AND fencing_token = p_token AND released_at IS NULL AND acquisition_id = v_acquisition',
      to: 'WHERE run_id = p_run AND fencing_token = p_token AND acquisition_id = v_acquisition',
    },
    {
      name: 'PostgreSQL: the wait at a fence has no bound',
      property: 'B21',
      file: 'src/stores/postgres/fence-functions.ts',
      from: "v_set := set_config('lock_timeout', '5s', true);",
      to: "v_set := set_config('lock_timeout', '0', true);",
    },
  ]),
  ...of('a single server Redis through ', 'test/stores/redis-suite.test.ts', [
    {
      name: 'Redis: a re-acquire keeps the old acquisition',
      property: 'B4',
      file: 'src/stores/redis/scripts.ts',
      from: "redis.call('HSET', key, 'acquisition', acquisition, 'expires', expires, 'ttl', ttl)",
      to: "redis.call('HSET', key, 'expires', expires, 'ttl', ttl)",
    },
    {
      name: 'Redis: a renewal does not compare the token',
      property: 'B5',
      file: 'src/stores/redis/scripts.ts',
      from: "if lease[1] == worker and lease[2] == token and lease[3] == acquisition and lease[5] == 'no'",
      to: "if lease[1] == worker and lease[3] == acquisition and lease[5] == 'no'",
    },
    {
      name: 'Redis: a renewal revives',
      property: 'B5',
      file: 'src/stores/redis/scripts.ts',
      from: '\n    and tonumber(lease[4]) > now then',
      to: ' then',
    },
    {
      name: 'Redis: a release does not compare the acquisition',
      property: 'B6',
      file: 'src/stores/redis/scripts.ts',
      from: "lease[2] ~= acquisition or lease[3] ~= 'no'",
      to: "lease[3] ~= 'no'",
    },
    {
      name: 'Redis: a repeated acquire is held up by itself',
      property: 'B12',
      file: 'src/stores/redis/scripts.ts',
      from: "(reacquire == 'refuse' and lease[3] ~= acquisition)",
      to: "reacquire == 'refuse'",
    },
  ]),
  ...of('', 'test/stores/redis-forgetting.test.ts', [
    {
      name: 'Redis: two grants of a millisecond get one token',
      property: 'B2',
      file: 'src/stores/redis/scripts.ts',
      from: 'math.max(newest + 1, math.floor(now / 1000))',
      to: 'math.max(newest, math.floor(now / 1000))',
    },
  ]),
  ...of('', 'test/stores/redis-opening.test.ts', [
    {
      name: 'Redis: a replica may answer a read',
      property: 'B13',
      file: 'src/stores/redis/scripts.ts',
      from: "if type(asked) == 'table' and asked.err and string.find(asked.err, 'READONLY', 1, true) then return asked end`;",
      to: '`;',
    },
  ]),
  ...of('', 'test/session/redis-session.test.ts', [
    {
      name: 'Redis: an older lease passes the fence',
      property: 'B17',
      file: 'src/stores/redis/fence-scripts.ts',
      from: "if lease[1] == worker and lease[2] == token and lease[4] == 'no'",
      to: "if lease[2] and lease[4] == 'no'",
    },
    {
      name: 'Redis: a re-acquire leaves the fence behind',
      property: 'B4',
      file: 'src/stores/redis/scripts.ts',
      from: "    if lease[6] == lease[2] then redis.call('HSET', key, 'shownBy', acquisition) end\n",
      to: '',
    },
    {
      name: 'Redis: a commit does not look at what has changed',
      property: 'B24',
      file: 'src/stores/redis/fence-scripts.ts',
      from: "if ARGV[arg + 5] ~= '' and",
      to: 'if false and',
    },
  ]),
  ...of('', 'test/fence/redis-function.test.ts', [
    {
      name: 'Redis: an equal token passes the fence with any acquisition',
      property: 'TK14',
      file: 'src/stores/redis/fence-scripts.ts',
      from: '(lease[5] == token and lease[6] == lease[3])',
      to: 'lease[5] == token',
    },
  ]),
];

/** Killed in that file, by the tests of that suite whose titles name the property. */
function of(suite, test, table) {
  return table.map((mutant) => ({ tests: [test], titled: `${suite}.*\\b${mutant.property}\\b`, ...mutant }));
}
