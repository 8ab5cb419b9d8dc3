import type { LeaseRef } from '../../lease.ts';
import { OutcomeUnknownError } from '../../errors.ts';
import { toFencingToken } from '../../options.ts';
import { lostReason } from '../lost-reason.ts';
import type { RenewResult } from '../store.ts';
import type { Rows } from './caller.ts';
import { fromMicroseconds } from './rows.ts';

/** Asks for some leases' renewal. The patient way waits for rows that others have locked. */
type Ask = (leases: readonly LeaseRef[], isPatient: boolean) => Promise<Rows>;

/**
 * Renews in one round trip. Only rows that somebody else keeps locked take a second one, which waits for them: the others
 * are renewed by then.
 *
 * @throws OutcomeUnknownError when the second failed: what was not locked was renewed.
 */
export async function renewalsOf(leases: readonly LeaseRef[], ask: Ask): Promise<RenewResult[]> {
  const results = readRenewals(leases, await ask(leases, false));
  const blocked = [...results.keys()].filter((index) => results[index] === undefined);
  if (blocked.length > 0) {
    const waitedFor = blocked.map((index) => leases[index]!);
    const late = readRenewals(
      waitedFor,
      await ask(waitedFor, true).catch((error: unknown) => throwPartly(leases, blocked, error)),
    );
    for (const [at, index] of blocked.entries()) results[index] = late[at];
  }
  return results as RenewResult[];
}

function throwPartly(leases: readonly LeaseRef[], blocked: readonly number[], cause: unknown): never {
  if (blocked.length === leases.length) throw cause;
  const others = leases.length - blocked.length;
  const first = JSON.stringify(leases[blocked[0]!]?.runId);
  throw new OutcomeUnknownError(
    `${others} of ${leases.length} leases were asked for, and those that are live were renewed; run ${first} could not be reached`,
    { cause },
  );
}

/** One result per lease, in order; undefined where the row was locked. */
function readRenewals(leases: readonly LeaseRef[], rows: Rows): (RenewResult | undefined)[] {
  const [common, ...others] = rows;
  const renewed: RenewResult = { status: 'renewed', expiresAt: fromMicroseconds(common?.['until_us']) };
  const results: (RenewResult | undefined)[] = leases.map(() => renewed);
  for (const row of others) {
    const index = Number(row['place']) - 1;
    results[index] = row['blocked'] === 'true' ? undefined : readRenewal(leases[index]!, row);
  }
  return results;
}

function readRenewal(lease: LeaseRef, row: Rows[number]): RenewResult {
  if (row['until_us'] !== null) return { status: 'renewed', expiresAt: fromMicroseconds(row['until_us']) };
  const newest =
    row['token'] === null
      ? undefined
      : {
          runId: lease.runId,
          workerId: String(row['worker']),
          fencingToken: toFencingToken(row['token']),
          acquisitionId: String(row['acquisition']),
          released: row['released'] === 'true',
          revoked: row['revoked'] === 'true',
        };
  return { status: 'lost', reason: lostReason(lease, newest) };
}
