/** Acquires and releases, alone or many in one statement, and what they answer. */
import { leaseIdOf } from '../../../machines/lease.rules.ts';
import type { AcquireRequest, AcquireResult, CallOptions, ReleaseRequest } from '../store.ts';
import { Turns } from '../turns.ts';
import type { Rows, Statement } from './caller.ts';
import { isRefusal } from './errors.ts';
import { columnsOf, readAcquireAnswer } from './rows.ts';
import type { Statements } from './statements.ts';

/** Whose rows are locked for some milliseconds. */
const MOST = 200;

/** One call has used up its run's tokens, or had to wait too long. */
const isUndone = (error: unknown): boolean => error instanceof RangeError || isRefusal((error as Error).cause);

type Ask = (what: Statement, values: unknown[], options: CallOptions | undefined) => Promise<Rows>;

export function acquireTurns(statements: Statements, ask: Ask): Turns<AcquireRequest, AcquireResult> {
  return new Turns({
    most: MOST,
    isUndone,
    one: async (request, options) => {
      const { runId, workerId, acquisitionId, ttlSeconds, reacquire = 'extend' } = request;
      const values = [runId, workerId, acquisitionId, ttlSeconds, reacquire === 'extend'];
      return resultOf(request, (await ask(statements.acquire, values, options))[0]?.['answer']);
    },
    many: async (requests) => {
      const values = columnsOf(requests, ['runId', 'workerId', 'acquisitionId', 'ttlSeconds']);
      const answers = inPlace(await ask(statements.acquireMany, values, undefined));
      return requests.map((request, index) =>
        typeof answers[index] === 'string' ? resultOf(request, answers[index]) : undefined,
      );
    },
  });
}

export function releaseTurns(statements: Statements, ask: Ask): Turns<ReleaseRequest, boolean> {
  return new Turns({
    most: MOST,
    isUndone,
    one: async ({ runId, workerId, acquisitionId, fencingToken = null }, options) => {
      const rows = await ask(statements.release, [runId, workerId, acquisitionId, fencingToken], options);
      return rows[0]?.['released'] === 'true';
    },
    many: async (requests) => {
      const values = columnsOf(requests, ['runId', 'workerId', 'acquisitionId', 'fencingToken']);
      const answers = inPlace(await ask(statements.releaseMany, values, undefined));
      return requests.map((_, index) => (typeof answers[index] === 'string' ? answers[index] === 'true' : undefined));
    },
  });
}

/** The answers in the order of the requests. */
function inPlace(rows: Rows): unknown[] {
  const answers: unknown[] = [];
  for (const row of rows) answers[Number(row['place']) - 1] = row['answer'];
  return answers;
}

function resultOf({ runId, workerId, acquisitionId, ttlSeconds }: AcquireRequest, answer: unknown): AcquireResult {
  const { status, fencingToken, seconds, holder } = readAcquireAnswer(answer);
  if (status === 'held') {
    return { status, workerId: holder, fencingToken, retryAfterSeconds: Math.max(0, seconds) };
  }
  const leaseId = leaseIdOf(runId, workerId, fencingToken);
  const lease = { runId, workerId, leaseId, fencingToken, expiresAt: seconds, acquisitionId, ttlSeconds };
  return { status: 'granted', lease, extended: status === 'extended' };
}
