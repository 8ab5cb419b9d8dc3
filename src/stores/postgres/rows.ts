/** Times travel as whole microseconds since the epoch, in decimal digits: exact, and the same in every time zone and driver. */
import { toFencingToken } from '../../options.ts';
import { leaseIdOf } from '../../../machines/lease.rules.ts';
import type { RunState } from '../../lease.ts';
import type { LeaseRecord, RevokedLease } from '../store.ts';

const MICROSECONDS = 1e6;

export function fromMicroseconds(digits: unknown): number {
  return Number(digits) / MICROSECONDS;
}

/** What a statement on many takes: an array for each field. What is absent is null. */
export function columnsOf<Request>(requests: readonly Request[], fields: readonly (keyof Request)[]): unknown[] {
  return fields.map((field) => requests.map((request) => request[field] ?? null));
}

/** What the statement of an acquire answers in one text: a word, the token, microseconds, and who has the run. */
export interface AcquireAnswer {
  readonly status: 'granted' | 'extended' | 'held';
  readonly fencingToken: number;
  /** The expiry, or how long the holder's lease still lives. */
  readonly seconds: number;
  readonly holder: string;
}

export function readAcquireAnswer(answer: unknown): AcquireAnswer {
  const [, status, token, microseconds, holder = ''] = /^(\w+) (\d+) (-?\d+) ?([^]*)$/.exec(String(answer)) ?? [];
  return {
    status: status as AcquireAnswer['status'],
    fencingToken: toFencingToken(token),
    seconds: fromMicroseconds(microseconds),
    holder,
  };
}

/** A run's record, from a row of `read` or `list`. */
export function recordOf(row: Readonly<Record<string, unknown>>): LeaseRecord {
  return {
    runId: String(row['run_id']),
    state: row['state'] as RunState,
    workerId: String(row['worker_id']),
    fencingToken: toFencingToken(row['token']),
    acquiredAt: fromMicroseconds(row['acquired_us']),
    expiresAt: row['until_us'] === null ? null : fromMicroseconds(row['until_us']),
    remainingSeconds: fromMicroseconds(row['remaining_us']),
    ttlSeconds: Number(row['ttl']),
    fence: toFencingToken(row['fence']),
    revoked:
      row['revoked_us'] === null
        ? null
        : {
            by: String(row['revoked_by']),
            reason: String(row['revoked_reason']),
            at: fromMicroseconds(row['revoked_us']),
          },
  };
}

/** The lease that a revocation ended, or null where there was none. */
export function revokedOf(runId: string, row: Readonly<Record<string, unknown>>): RevokedLease | null {
  if (row['token'] === null) return null;
  const workerId = String(row['worker']);
  const fencingToken = toFencingToken(row['token']);
  return {
    runId,
    workerId,
    leaseId: leaseIdOf(runId, workerId, fencingToken),
    fencingToken,
    expiresAt: fromMicroseconds(row['until_us']),
    ttlSeconds: Number(row['ttl']),
  };
}

/** The first name after all that begin with the prefix, in the order of bytes; null when there is none. */
export function afterPrefix(prefix: string): string | null {
  const points = Array.from(prefix, (character) => character.codePointAt(0)!);
  while (points.length > 0) {
    const last = points.pop()!;
    if (last === 0x10ffff) continue;
    // No character lies between D7FF and E000.
    return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1);
  }
  return null;
}
