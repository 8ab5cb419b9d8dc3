import type { ActorLogic } from 'xstate';
import type { RegistryAnswer, RegistryEvent } from '../../machines/registry.events.ts';
import type { RegistryInput, RegistrySnapshot } from '../../machines/registry.logic.ts';
import { registryLogic as unchecked } from '../../machines/registry.logic.ts';
import { reportListenerError } from '../events.ts';
import { checkDuration, checkFunction, checkObject, checkOneOf } from '../options.ts';
import { checkCall } from './registry-checks.ts';
import { restoring } from './registry-restoring.ts';

/**
 * The registry as actor logic, to `invoke` or `spawn` in a machine of your own. Send it the calls of `LeaseRegistry` as
 * events (`lease.acquire`, `lease.heartbeat`, `lease.validate`, `lease.release`, `lease.expire`) with `replyTo: self`, and
 * the answer comes back as an event: `lease.granted`, `lease.refused` with the lease that has the run, and so on. It is
 * persisted and restored with its parent, leases and token counter included. A record that contradicts itself is not restored:
 * the actor fails as its parent starts, which is the parent's `onError`, or its own error where it has none.
 *
 * A call that makes no sense is answered with `lease.rejected` and changes nothing. A `replyTo` that throws is reported as a
 * process warning and stops nothing. No clock is read: `now` comes with each call, in seconds.
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
    const next = error === undefined ? unchecked.transition(snapshot, event, scope) : rejected(snapshot, error);
    const { answer } = next;
    if (answer !== undefined) scope.defer(() => reply(event, answer));
    return next;
  },
  ...restoring,
};

function mistakeIn(event: RegistryEvent, { runs }: RegistrySnapshot): Error | undefined {
  try {
    checkCall(event, runs);
    checkReplyTo(event.replyTo);
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

function checkReplyTo(replyTo: unknown): void {
  if (replyTo === undefined) return;
  checkObject('replyTo', replyTo);
  checkFunction('replyTo.send', (replyTo as { readonly send?: unknown }).send);
}

function rejected(snapshot: RegistrySnapshot, error: Error): RegistrySnapshot {
  return { ...snapshot, answer: { type: 'lease.rejected', error } };
}

/** Whoever cannot take an answer must not stop the leases of all others. */
function reply(event: RegistryEvent, answer: RegistryAnswer): void {
  try {
    event.replyTo?.send(answer);
  } catch (error) {
    reportListenerError(error, "the registry's answers");
  }
}
