/** A worker stopped in the middle, on SQLite. */
import { beforeEach, describe, expect, it } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import { freshRun } from '../stores/postgres-fixtures.ts';
import { connect, newFile, openFile } from '../stores/sqlite/files.ts';
import { lost } from './leases.ts';
import { lostByMessage, takeOver, tellsTheStory, TTL_SECONDS, twoWorkers, type Place } from './stopped-worker.ts';
import type { Way } from './worker.ts';

describe('workers stopped on SQLite', () => {
  let place: Place;

  beforeEach(async () => {
    const file = newFile();
    await using store = await openFile('libsql', file);
    const database = connect('libsql', file);
    database.exec('CREATE TABLE job (id TEXT PRIMARY KEY, status TEXT)');
    database.exec('CREATE TABLE fenced (id TEXT PRIMARY KEY, status TEXT, token INTEGER)');
    await store.fenceTable('fenced', { run: 'id', token: 'token' });
    database.close();
    place = sqlitePlace(file);
  });

  tellsTheStory(['session', 'transaction', 'begun', 'table'], () => place);

  it('B20 TK6 a worker stopped inside a fenced transaction keeps the file: unavailable and not lost, until it goes on', async () => {
    const { a, b, runId } = await twoWorkers(place);
    const lease = (await a.acquire(runId, 'worker-a', TTL_SECONDS))!;
    const stopped = await a.stopBeforeWriting('fenced', lease, 'in flight');
    await place.passed(TTL_SECONDS);
    await expect(b.acquire(runId, 'worker-b', 60)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: true,
    });
    expect((await stopped.continue()).error).toBeUndefined();
    const next = await takeOver(b, runId);
    expect(await b.write('fenced', next, 'done')).toBe('in flight');
    await expect(a.write('fenced', lease, 'late')).rejects.toEqual(lost('superseded'));
  });
});

function sqlitePlace(file: string): Place {
  const refusal = (way: Way): unknown => (way === 'table' ? lostByMessage() : lost('superseded'));
  const statusBy = async (sql: string, value: string): Promise<unknown> => {
    const database = connect('libsql', file);
    database.exec('PRAGMA busy_timeout = 5000');
    const [row] = database.prepare(sql).all(value) as Record<string, unknown>[];
    database.close();
    return row?.['status'];
  };
  return {
    url: `sqlite:${file}`,
    addRun: async () => {
      const runId = freshRun();
      const database = connect('libsql', file);
      database.exec('PRAGMA busy_timeout = 5000');
      database.exec(`INSERT INTO job VALUES ('${runId}', 'new'); INSERT INTO fenced VALUES ('${runId}', 'new', NULL)`);
      database.close();
      return runId;
    },
    statusOf: async (way, runId) => {
      if (way !== 'session')
        return statusBy(`SELECT status FROM ${way === 'table' ? 'fenced' : 'job'} WHERE id = ?`, runId);
      const sql = `SELECT json ->> 'status' AS status FROM lessor_document WHERE run_id = ?`;
      return (await statusBy(sql, runId)) ?? 'new';
    },
    passed: (seconds) => sleep(seconds * 1000 + 5),
    refusal,
    // What its transaction had read is older than the take-over, so that it can never write: refused when it begins anew.
    lateRefusal: (way) => (way === 'begun' ? expect.objectContaining({ code: 'CONFLICT' }) : refusal(way)),
  };
}
