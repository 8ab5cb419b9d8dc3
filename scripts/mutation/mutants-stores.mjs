/** Errors of the stores in memory and on SQLite. @type {readonly import('./mutant.mjs').Mutant[]} */
export const storeMutants = [
  ...of('the memory store keeps ', 'test/testing/memory-suite.test.ts', [
    {
      name: 'memory: a re-acquired lease does not end its older handle',
      property: 'B4',
      file: 'machines/lease.rules.ts',
      from: 'acquisitionId: by.acquisitionId,',
      to: 'acquisitionId: lease.acquisitionId,',
    },
    {
      name: 'memory: a renewal shortens',
      property: 'B5',
      file: 'machines/lease.rules.ts',
      from: 'Math.max(lease.expiresAt, by.now + by.ttlSeconds)',
      to: 'by.now + by.ttlSeconds',
    },
    {
      name: 'memory: a renewal does not compare the worker',
      property: 'B5',
      file: 'src/stores/memory.ts',
      from: 'if (row !== undefined && names(lease, row.lease)) {',
      to: 'if (row !== undefined && names({ ...lease, workerId: row.lease.workerId }, row.lease)) {',
    },
    {
      name: 'memory: a release succeeds twice',
      property: 'RL3',
      file: 'src/stores/memory.ts',
      from: '!names(lease, row.lease) || row.released)',
      to: '!names(lease, row.lease))',
    },
    {
      name: 'memory: a release does not compare the acquisition',
      property: 'B6',
      file: 'src/stores/lost-reason.ts',
      from: '(shown.acquisitionId ?? lease.acquisitionId) === lease.acquisitionId',
      to: 'true',
    },
    {
      name: 'memory: a repeated acquire is held up by itself',
      property: 'B12',
      file: 'machines/lease.rules.ts',
      from: '(ask.acquisitionId !== undefined && ask.acquisitionId === lease.acquisitionId)',
      to: 'false',
    },
    {
      name: 'memory: a closed store answers',
      property: 'B15',
      file: 'src/stores/memory.ts',
      from: "    if (this.#closed) throw new StoreUnavailableError('The memory store was closed');\n",
      to: '',
    },
  ]),
  ...of('', 'test/session/memory-session.test.ts', [
    {
      name: 'memory: a released lease passes the fence',
      property: 'B19',
      file: 'src/stores/memory-documents.ts',
      from: 'newest === undefined || newest.released ||',
      to: 'newest === undefined ||',
    },
    {
      name: 'memory: an older lease passes the fence',
      property: 'B17',
      file: 'src/stores/memory-documents.ts',
      from: ' || !names(fence, newest)) {',
      to: ') {',
    },
    {
      name: 'memory: a commit does not look at what has changed',
      property: 'B24',
      file: 'src/stores/memory-documents.ts',
      from: 'if (this.#document(runId).version !== version)',
      to: 'if (this.#document(runId).version < version)',
    },
  ]),
  ...of('the SQLite store on ', 'test/stores/sqlite.kit.test.ts', [
    {
      name: 'SQLite: a renewal shortens',
      property: 'B5',
      file: 'src/stores/sqlite/statements.ts',
      from: 'SET expires_at = max(expires_at, ?), ttl_seconds = ?',
      to: 'SET expires_at = ?, ttl_seconds = ?',
    },
    {
      name: 'SQLite: a release does not compare the acquisition',
      property: 'B6',
      file: 'src/stores/sqlite/statements.ts',
      from: 'AND acquisition_id = ? AND fencing_token = coalesce(?, fencing_token)',
      to: 'AND ? IS NOT NULL AND fencing_token = coalesce(?, fencing_token)',
    },
    {
      name: 'SQLite: a release does not compare the token',
      property: 'B6',
      file: 'src/stores/sqlite/statements.ts',
      from: 'AND fencing_token = coalesce(?, fencing_token)',
      to: 'AND coalesce(?, fencing_token) > 0',
    },
    {
      name: 'SQLite: a renewal revives',
      property: 'B5',
      file: 'src/stores/sqlite.ts',
      from: 'if (!isLiveRow(row, now) || !names(lease, row)) {',
      to: 'if (!isCurrentRow(row) || !names(lease, row)) {',
    },
    {
      name: 'SQLite: a ttl is rounded down',
      property: 'B8',
      file: 'src/stores/sqlite/rows.ts',
      from: 'const milliseconds = Math.ceil(ttlSeconds * 1000);\n  const roundedUp = milliseconds / 1000 < ttlSeconds ? milliseconds + 1 : milliseconds;',
      to: 'const roundedUp = Math.floor(ttlSeconds * 1000);',
    },
  ]),
  ...of('', 'test/stores/sqlite.contents.test.ts', [
    {
      name: 'SQLite: a token is above the lease row alone',
      property: 'B2',
      file: 'src/stores/sqlite/rows.ts',
      from: 'return Math.max(row.fencingToken ?? 0, row.fence ?? 0);',
      to: 'return row.fencingToken ?? 0;',
    },
    {
      name: 'SQLite: a re-acquire leaves the fence row behind',
      property: 'B4',
      file: 'src/stores/sqlite.ts',
      from: '    this.#statements.moveFence.run(acquisitionId, row.runId, row.fencingToken);\n',
      to: '',
    },
    {
      name: 'SQLite: a re-acquire moves the fence row of another token, too',
      property: 'B4',
      file: 'src/stores/sqlite/statements.ts',
      from: 'SET acquisition_id = ? WHERE run_id = ? AND fencing_token = ?`',
      to: 'SET acquisition_id = ? WHERE run_id = ? AND fencing_token <> -?`',
    },
  ]),
  ...of('', 'test/fence/sqlite.test.ts', [
    {
      name: 'SQLite: the lease row is not checked',
      property: 'B18',
      file: 'src/stores/sqlite/fence.ts',
      from: 'if (!isCurrentRow(row) || !names(fence, row)) throw',
      to: 'if (row === undefined) throw',
    },
    {
      name: 'SQLite: the fence row is not checked',
      property: 'TK14',
      file: 'src/stores/sqlite/fence.ts',
      from: '  if (reason) throw new LeaseLostError(fence, reason);\n',
      to: '',
    },
    {
      name: 'SQLite: an equal token passes the fence with any acquisition',
      property: 'TK14',
      file: 'src/stores/sqlite/fence.ts',
      from: 'const isSame = raised.fencingToken === lease.fencingToken && raised.acquisitionId === lease.acquisitionId;',
      to: 'const isSame = raised.fencingToken === lease.fencingToken;',
    },
    {
      name: 'SQLite: the fence is not raised',
      property: 'B16',
      file: 'src/stores/sqlite/fence.ts',
      from: '  statements.raiseFence.run(fence.runId, lease.fencingToken, lease.acquisitionId);\n',
      to: '  void lease;\n',
    },
    {
      name: 'SQLite: a released lease passes a fence that it has raised before',
      property: 'B19',
      file: 'src/stores/sqlite/fence-transaction.ts',
      from: 'AND lease.worker_id = ? AND lease.expires_at IS NOT NULL',
      to: 'AND lease.worker_id = ?',
    },
  ]),
  ...of('', 'test/fence/sqlite-table.test.ts', [
    {
      name: 'SQLite: a fenced table takes rows of a leased run without a token',
      property: 'B19',
      file: 'src/stores/sqlite/fence-table.ts',
      from: 'THEN NOT EXISTS (SELECT 1 FROM lessor_lease WHERE run_id = CAST(${run} AS TEXT))',
      to: 'THEN ${run} IS NOT NULL',
    },
  ]),
  ...of('', 'test/stores/sqlite.failures.test.ts', [
    {
      name: 'SQLite: a release frees a lease of another file',
      property: 'B10',
      file: 'src/stores/sqlite/statements.ts',
      from: "AND expires_at IS NOT NULL AND (SELECT value FROM lessor_meta WHERE key = 'marker') = ?`",
      to: 'AND expires_at IS NOT NULL AND ? IS NOT NULL`',
    },
  ]),
];

/** Killed in that file, by the tests of that suite whose titles name the property. */
function of(suite, test, table) {
  return table.map((mutant) => ({ tests: [test], titled: `${suite}.*\\b${mutant.property}\\b`, ...mutant }));
}
