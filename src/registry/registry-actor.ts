import type { ActorLogic } from 'xstate';
import type { RegistryAnswer, RegistryEvent } from '../../machines/registry.events.ts';
import type { PersistedRegistry, RegistryInput, RegistrySnapshot } from '../../machines/registry.logic.ts';
import { registryLogic as unchecked } from '../../machines/registry.logic.ts';
import {
  checkDuration,
  checkFencingToken,
  checkName,
  checkNow,
  checkOneOf,
  checkString,
  rangeError,
} from '../options.ts';
import { readRecord } from './registry-record.ts';

/**
 * The registry as actor logic, to `invoke` or `spawn` in a machine of your own. Send it the calls of `LeaseRegistry` as
 * events (`lease.acquire`, `lease.heartbeat`, `lease.validate`, `lease.release`, `lease.expire`) with `replyTo: self`, and
 * the answer comes back as an event: `lease.granted`, `lease.refused` with the lease that has the run, and so on. It is
 * persisted and restored with its parent, leases and token counter included; one that contradicts itself leaves it with an error.
 *
 * A call that makes no sense is answered with `lease.rejected` and changes nothing. No clock is read: `now` comes with
 * each call, in seconds.
 *
 * @example
 * const orchestrator = setup({ actors: { registry: registryLogic } }).createMachine({
 *   invoke: { src: 'registry', id: 'registry', input: { ttlSeconds: 10 } },
 *   on: {
 *     'job.offer': {
 *       actions: sendTo('registry', ({ event, self }) => ({
 *         type: 'lease.acquire', runId: event.jobId, workerId: event.workerId, now: event.now, replyTo: self,
 *       })),
 *     },
 *     'lease.granted': { actions: ({ event }) => console.log('granted', event.lease.leaseId) },
 *   },
 * });
 */
export const registryLogic: ActorLogic<RegistrySnapshot, RegistryEvent, RegistryInput> = {
  ...unchecked,
  getInitialSnapshot: (scope, input) => {
    checkDuration('ttlSeconds', input.ttlSeconds);
    checkOneOf('reacquire', input.reacquire ?? 'refuse', ['refuse', 'extend']);
    return unchecked.getInitialSnapshot(scope, input);
  },
  transition: (snapshot, event, scope) => {
    const error = mistakeIn(event, snapshot);
    if (error === undefined) return unchecked.transition(snapshot, event, scope);
    const answer: RegistryAnswer = { type: 'lease.rejected', error };
    if (event.replyTo) scope.defer(() => event.replyTo?.send(answer));
    return { ...snapshot, answer };
  },
  restoreSnapshot: (snapshot, scope) => {
    const persisted = snapshot as PersistedRegistry;
    const record = readRecord(persisted.record);
    return unchecked.restoreSnapshot!({ ...persisted, record } as PersistedRegistry, scope);
  },
};

function mistakeIn(event: RegistryEvent, { runs }: RegistrySnapshot): Error | undefined {
  try {
    checkEvent(event, Math.max(runs.latestNow, 'now' in event ? event.now : 0), runs.ttlSeconds);
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

/** What `LeaseRegistry` checks of its arguments. An event that is no call (such as a child's) passes. */
function checkEvent(event: RegistryEvent, now: number, defaultTtlSeconds: number): void {
  const { type } = event;
  if (type === 'lease.acquire') {
    checkName('runId', event.runId);
    checkName('workerId', event.workerId);
    checkOneOf('reacquire', event.reacquire ?? 'refuse', ['refuse', 'extend']);
  }
  if (type === 'lease.validate') checkName('runId', event.runId);
  if (type === 'lease.heartbeat' || type === 'lease.validate' || type === 'lease.release') {
    checkString('leaseId', event.leaseId);
    checkFencingToken('fencingToken', event.fencingToken);
  }
  if (type === 'lease.acquire' || type === 'lease.heartbeat' || type === 'lease.validate' || type === 'lease.expire') {
    checkNow('now', event.now);
  }
  if (type === 'lease.acquire' || type === 'lease.heartbeat') {
    const { ttlSeconds = defaultTtlSeconds } = event;
    checkDuration('ttlSeconds', ttlSeconds);
    checkLifetime(now, ttlSeconds);
  }
}

/** No lease is born expired, and none lives for ever. */
export function checkLifetime(now: number, ttlSeconds: number): void {
  const until = now + ttlSeconds;
  if (!(Number.isFinite(until) && until > now))
    throw rangeError('now', `to leave room for ${ttlSeconds} seconds of ttl`, now);
}
