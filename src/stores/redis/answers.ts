/** What the scripts answer, as the contract has it. Times come and go in whole microseconds. */
import { leaseIdOf } from '../../../machines/lease.rules.ts';
import type { LeaseRef, LostReason } from '../../lease.ts';
import { toFencingToken } from '../../options.ts';
import type { Fence } from '../../session/documents.ts';
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
  const leaseId = leaseIdOf(runId, workerId, fencingToken);
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
export function renewResultOf(lease: LeaseRef, answer: Answer): RenewResult {
  const [status, expires] = answer;
  return status === 'renewed'
    ? { status, expiresAt: toSeconds(expires) }
    : { status: 'lost', reason: lossOf(lease, answer) };
}

/** Of `lost`, with the run's newest lease, and of `fenced`: the fence stands above the lease. */
export function lossOf(lease: Fence, [status, workerId, token, acquisitionId, ended]: Answer): LostReason {
  if (status === 'fenced') return 'superseded';
  if (status !== 'lost' || workerId === undefined) return 'unknown';
  return lostReason(lease, {
    runId: lease.runId,
    workerId,
    fencingToken: toFencingToken(token),
    acquisitionId: acquisitionId!,
    released: ended !== 'no',
    revoked: ended === 'revoked',
  });
}

/** Of `revoked`. */
export function revokedOf(runId: string, [, workerId, token, expires, ttl]: Answer): RevokedLease {
  const fencingToken = toFencingToken(token);
  return {
    runId,
    workerId: workerId!,
    leaseId: leaseIdOf(runId, workerId!, fencingToken),
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
