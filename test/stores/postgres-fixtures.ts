/** What the tests of the PostgreSQL store share. */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { expect } from 'vitest';
import type { StoredLease } from '../../src/lease.ts';
import type { AcquireRequest, LeaseStore } from '../../src/stores/store.ts';

export function freshRun(): string {
  return `run-${randomUUID()}`;
}

export function ask(runId: string, changes: Partial<AcquireRequest> = {}): AcquireRequest {
  return { runId, workerId: 'worker-a', acquisitionId: randomUUID(), ttlSeconds: 30, ...changes };
}

/** Acquires, and fails the test when that is refused. */
export async function granted(store: LeaseStore, request: AcquireRequest): Promise<StoredLease> {
  const result = await store.acquire(request);
  expect(result).toMatchObject({ status: 'granted' });
  return (result as { lease: StoredLease }).lease;
}

/** The server's own clock, in seconds. */
export async function serverNow(pool: pg.Pool): Promise<number> {
  return Number((await pool.query('SELECT extract(epoch FROM clock_timestamp())::text AS now')).rows[0].now);
}

/** Waits until the server's own clock has moved by so much. */
export async function untilPassed(pool: pg.Pool, seconds: number): Promise<void> {
  const until = (await serverNow(pool)) + seconds;
  for (let now = await serverNow(pool); now < until; now = await serverNow(pool)) await pause(until - now + 0.001);
}

/** Asks again and again until the answer is yes. */
export async function until(isSo: () => Promise<boolean> | boolean, seconds = 20): Promise<void> {
  const deadline = performance.now() + seconds * 1000;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`Not so within ${seconds} s: ${String(isSo)}`);
    await pause(0.01);
  }
}

export function pause(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

/** Keeps what the statement locks, in a transaction of somebody else's, until the returned function is called. */
export async function lock(
  pool: pg.Pool,
  sql: string,
  values: unknown[],
): Promise<(end: 'COMMIT' | 'ROLLBACK') => Promise<void>> {
  const client = await pool.connect();
  // It may be terminated by the test.
  client.on('error', () => {});
  await client.query('BEGIN');
  await client.query(sql, values);
  return async (end) => {
    const failure: unknown = await client.query(end).then(
      () => undefined,
      (error: unknown) => error,
    );
    client.release(failure !== undefined);
  };
}

/** Waits until so many statements wait for a lock. */
export async function untilWaiting(pool: pg.Pool, count: number): Promise<void> {
  await until(async () => {
    const { rows } = await pool.query(`SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'`);
    return rows[0].n >= count;
  });
}
