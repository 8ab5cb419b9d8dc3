/** What the scripts answer, as the contract has it. Times come and go in whole microseconds. */
import type { LeaseRef } from '../../lease.ts';
import { toFencingToken } from '../../options.ts';
import { lostReason } from '../lost-reason.ts';
import type { AcquireRequest, GrantedResult, HeldResult, LeaseRecord, RenewResult, RevokedLease } from '../store.ts';

const MICROSECONDS = 1_000_000;

/** The words of an answer. A client that was told to gives bytes instead of strings; what is absent is empty. */
export type Answer = readonly string[];

export function answerOf(reply: unknown): Answer {
  return Array.isArray(reply) ? reply.map((word: unknown) => (word === null ? '' : String(word))) : [];
}

/** Rounded up, so that nobody sees an expiry earlier than the one the worker counts with. */
export function toMicroseconds(seconds: number): string {
  return String(Math.ceil(seconds * MICROSECONDS));
}

function toSeconds(microseconds: string | undefined): number {
  return Number(microseconds) / MICROSECONDS;
}

/** Of `granted` and `extended`. */
export function grantedOf(request: AcquireRequest, [status, token, expires]: Answer): GrantedResult {
  const { runId, workerId, acquisitionId, ttlSeconds } = request;
  const fencingToken = toFencingToken(token);
  const leaseId = `${runId}:${workerId}:${fencingToken}`;
  const expiresAt = toSeconds(expires);
  return {
    status: 'granted',
    lease: { runId, workerId, leaseId, fencingToken, acquisitionId, expiresAt, ttlSeconds },
    extended: status === 'extended',
  };
}

/** Of `held`. */
export function heldOf([, workerId, token, remaining]: Answer): HeldResult {
  return {
    status: 'held',
    workerId: workerId!,
    fencingToken: toFencingToken(token),
    retryAfterSeconds: toSeconds(remaining),
  };
}

/** Of `renewed` and `lost`. */
export function renewResultOf(lease: LeaseRef, [status, ...rest]: Answer): RenewResult {
  if (status === 'renewed') return { status, expiresAt: toSeconds(rest[0]) };
  const [workerId, token, acquisitionId, ended] = rest;
  if (status !== 'lost' || workerId === undefined) return { status: 'lost', reason: 'unknown' };
  const newest = {
    runId: lease.runId,
    workerId,
    fencingToken: toFencingToken(token),
    acquisitionId: acquisitionId!,
    released: ended !== 'no',
    revoked: ended === 'revoked',
  };
  return { status: 'lost', reason: lostReason(lease, newest) };
}

/** Of `revoked`. */
export function revokedOf(runId: string, [, workerId, token, expires, ttl]: Answer): RevokedLease {
  const fencingToken = toFencingToken(token);
  return {
    runId,
    workerId: workerId!,
    leaseId: `${runId}:${workerId}:${fencingToken}`,
    fencingToken,
    expiresAt: toSeconds(expires),
    ttlSeconds: toSeconds(ttl),
  };
}

/** Of `run`. */
export function recordOf(runId: string, answer: Answer): LeaseRecord {
  const [, shown, now, workerId, token, expires, ended, acquired, ttl, by, reason, revoked] = answer;
  const fencingToken = toFencingToken(token);
  const isFree = ended !== 'no';
  const remaining = Number(expires) - Number(now);
  return {
    runId,
    state: isFree ? 'free' : remaining > 0 ? 'held' : 'expired',
    workerId: workerId!,
    fencingToken,
    acquiredAt: toSeconds(acquired),
    expiresAt: isFree ? null : toSeconds(expires),
    remainingSeconds: isFree ? 0 : Math.max(0, remaining) / MICROSECONDS,
    ttlSeconds: toSeconds(ttl),
    fence: Math.max(fencingToken, Number(shown)),
    revoked: ended === 'revoked' ? { by: by!, reason: reason!, at: toSeconds(revoked) } : null,
  };
}
