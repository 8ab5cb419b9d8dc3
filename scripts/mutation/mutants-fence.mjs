const FILE = 'src/stores/postgres/fence-statements.ts';
const TESTS = ['test/fence/postgres-kept.test.ts'];

/** Errors in the update that keeps a fence on PostgreSQL. @type {readonly import('./mutant.mjs').Mutant[]} */
export const fenceMutants = [
  {
    name: 'a kept fence waits without a bound',
    property: 'B20',
    from: ' SKIP LOCKED',
    to: '',
  },
  {
    name: 'a released lease keeps the fence',
    property: 'B19',
    from: ' AND l.released_at IS NULL',
    to: '',
  },
  {
    name: 'an older lease of the same worker keeps the fence',
    property: 'B18',
    from: ' AND l.fencing_token = $3 AND l.acquisition_id = $4',
    to: '',
  },
  {
    name: 'another worker keeps the fence',
    property: 'B19',
    from: ' AND l.worker_id = $2',
    to: ' AND $2::text IS NOT NULL',
  },
  {
    name: 'a kept fence is looked at in an old snapshot',
    property: 'B22',
    from: "AND current_setting('transaction_isolation') = 'read committed'",
    to: '',
  },
  {
    name: 'the fence of a copy is kept',
    property: 'B10',
    from: ' AND ${isHome(home)}',
    to: '',
  },
].map((mutant) => ({ file: FILE, tests: TESTS, ...mutant }));
