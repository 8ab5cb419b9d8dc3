/** A rule of the contract: its sentence is the test's name, the report's line and what a skip names. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { StoredLease } from '../lease.ts';
import type { AcquireRequest, HeldResult, LeaseStore } from '../stores/store.ts';
import type { StoreHarness } from './harness.ts';

/** Shows the rule on a store, or throws what is wrong. Correct while each call takes much less than the ttl. */
export type Rule = (context: RuleContext) => Promise<void>;

/** Rules of one kind, by their sentences. */
export interface RuleFamily {
  readonly title: string;
  /** What the harness must offer for them. */
  readonly needs?: 'reopen' | 'unreachable' | 'plantToken';
  readonly rules: Readonly<Record<string, Rule>>;
}

export interface RuleContext {
  readonly store: LeaseStore;
  readonly harness: StoreHarness;
  readonly ttlSeconds: number;
  /** A run that was never leased. */
  readonly runId: string;
  /** Another one that was never leased. */
  anotherRun(): string;
  readonly advance: (seconds: number) => Promise<void>;
}

export function freshRunId(): string {
  return `kit-${randomUUID()}`;
}

/** An acquire of `worker-a` with an acquisition id of its own, changed by `changes`. */
export function requestFor(context: RuleContext, changes: Partial<AcquireRequest> = {}): AcquireRequest {
  const { runId, ttlSeconds } = context;
  return { runId, workerId: 'worker-a', acquisitionId: randomUUID(), ttlSeconds, ...changes };
}

/** Acquires, and fails the rule when that is refused. */
export async function granted(context: RuleContext, changes?: Partial<AcquireRequest>): Promise<StoredLease> {
  const result = await context.store.acquire(requestFor(context, changes));
  assert.equal(result.status, 'granted', `Expected a grant, got ${JSON.stringify(result)}`);
  return (result as { lease: StoredLease }).lease;
}

/** Acquires, and fails the rule when that is granted. */
export async function refused(context: RuleContext, changes?: Partial<AcquireRequest>): Promise<HeldResult> {
  const result = await context.store.acquire(requestFor(context, changes));
  assert.equal(result.status, 'held', `Expected a refusal, got ${JSON.stringify(result)}`);
  return result;
}

/** Asks for one renewal, and fails the rule unless the answer is `status`, and for a loss one of `reasons`. */
export async function renewal(
  context: RuleContext,
  lease: StoredLease,
  status: 'renewed' | 'lost',
  ...reasons: readonly string[]
): Promise<void> {
  const [result, ...more] = await context.store.renew([lease], context.ttlSeconds);
  assert.deepEqual(more, []);
  assert.equal(result?.status, status, `Expected \`${status}\`, got ${JSON.stringify(result)}`);
  if (result.status === 'lost' && reasons.length > 0) assert.ok(reasons.includes(result.reason), result.reason);
}

/** Fails the rule unless the lease is the run's live one, by all that can be seen, and still renewable. */
export async function stillLive(context: RuleContext, lease: StoredLease): Promise<void> {
  const record = await context.store.read(lease.runId);
  const { state, workerId, fencingToken } = record ?? {};
  const { workerId: owner, fencingToken: token } = lease;
  assert.deepEqual({ state, workerId, fencingToken }, { state: 'held', workerId: owner, fencingToken: token });
  await renewal(context, lease, 'renewed');
}
