/** The fence of a transaction of the user's own, as the two statements that raise it. */
import type { LeaseRef } from '../../lease.ts';
import { statement } from './caller.ts';
import type { PostgresStatement } from './client.ts';
import { isHome, placeOf } from './statements.ts';

/** Where the leases are: the quoted schema, and the home that the store was opened on. */
export interface FenceHome {
  readonly schema: string;
  readonly home: string;
  /** Whether the fence is prepared, where that can do no harm. */
  readonly prepare: boolean;
}

export interface FenceStatements {
  /**
   * What the function `fence` does but for looking whether this is a transaction, which is known here. Done only where the
   * leases are those that the store was opened on; their place is the answer where they are not.
   */
  readonly raise: PostgresStatement;
  /**
   * The same for a fence that stands at this lease already, by one update and no function, for two thirds of the cost. It
   * changes one row; or none, which says nothing: then `raise` is to be asked. Prepared only.
   *
   * The row is locked where nobody has to be waited for. So the lease is looked at when it is locked, and no wait has to be
   * bounded. In a transaction with one snapshot that look may be old: there it is left to `raise`.
   */
  readonly keep: PostgresStatement;
}

/** By the store's home, so that their texts are made once. */
const statements = new WeakMap<FenceHome, FenceStatements>();

export function fenceStatements(home: FenceHome): FenceStatements {
  const known = statements.get(home) ?? { raise: prepared(raise(home), home), keep: prepared(keep(home), home) };
  statements.set(home, known);
  return known;
}

/** From now on they are sent as they are. */
export function unprepare(home: FenceHome): void {
  const { raise, keep } = fenceStatements(home);
  statements.set(home, { raise: { text: raise.text }, keep: { text: keep.text } });
}

/** What `raise` takes. */
export function raiseValues(lease: LeaseRef, { home }: FenceHome): (string | number)[] {
  return [home, ...keepValues(lease)];
}

/** What `keep` takes. */
export function keepValues({ runId, workerId, fencingToken, acquisitionId }: LeaseRef): (string | number)[] {
  return [runId, workerId, fencingToken, acquisitionId];
}

function prepared(text: string, { prepare }: FenceHome): PostgresStatement {
  const { name } = statement(text);
  return prepare && name !== undefined ? { text, name } : { text };
}

const raise = ({ schema }: FenceHome): string =>
  `SELECT CASE WHEN starts_with(m.place, $1) THEN ${schema}.raise_fence($2, $3, $4, $5)::text ELSE m.place END AS place,
        pg_backend_pid() AS pid
      FROM (SELECT ${placeOf(schema)} AS place FROM ${schema}.meta m) m`;

const keep = (home: FenceHome): string => `UPDATE ${home.schema}.fence f SET acquisition_id = f.acquisition_id
    FROM (SELECT ctid FROM ${home.schema}.fence WHERE run_id = $1 AND fencing_token = $3 AND acquisition_id = $4
      FOR NO KEY UPDATE SKIP LOCKED) locked, ${home.schema}.lease l, ${home.schema}.meta m
    WHERE f.ctid = locked.ctid AND ${isHome(home)}
      AND l.run_id = $1 AND l.worker_id = $2 AND l.fencing_token = $3 AND l.acquisition_id = $4 AND l.released_at IS NULL
      AND current_setting('transaction_isolation') = 'read committed'`;
