/** What the tests of the fence share. */
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { LeaseStore, LostReason, StoredLease } from '../../src/index.ts';

/** Acquires, and fails the test when that is refused. */
export async function acquire(
  store: LeaseStore,
  runId: string,
  workerId: string,
  ttlSeconds = 60,
): Promise<StoredLease> {
  const result = await store.acquire({ runId, workerId, ttlSeconds, acquisitionId: randomUUID() });
  if (result.status !== 'granted') throw new Error(`${runId} is held by ${result.workerId}`);
  return result.lease;
}

export function lost(reason: LostReason): unknown {
  return expect.objectContaining({ code: 'LEASE_LOST', retryable: false, reason });
}

/** What the call throws, at once. */
export function errorOf(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  return undefined;
}

/** What the call throws, as one text with its code. */
export function codeOf(call: () => unknown): string {
  const error = errorOf(call) as { code?: unknown; message?: unknown } | undefined;
  return error === undefined ? 'nothing' : `${String(error.code)} ${String(error.message)}`;
}
