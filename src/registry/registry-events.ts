import type { RegistryAnswer } from '../../machines/registry.events.ts';
import type { Emitter } from '../events.ts';
import type { Lease } from '../lease.ts';

/**
 * What a registry tells its listeners, after the call that caused it and before that call returns. A lease begins once,
 * with `lease.granted`, and ends at most once, with `lease.released` or `lease.takenOver`. A listener may call the registry.
 */
export interface RegistryEvents {
  /** A new lease, with a new token. */
  'lease.granted': { readonly lease: Lease };
  /** An acquire found the run held, by `lease`. */
  'lease.refused': { readonly runId: string; readonly workerId: string; readonly lease: Lease };
  /** The lease lives longer: a heartbeat, or a re-acquire by its own worker. */
  'lease.renewed': { readonly lease: Lease };
  /** The ttl has passed, as a heartbeat or `expire` found. No end yet: the lease can still be released. At most once a lease. */
  'lease.expired': { readonly lease: Lease };
  /** `previous` has ended: `lease`, granted just now, took over from it. */
  'lease.takenOver': { readonly previous: Lease; readonly lease: Lease };
  'lease.released': { readonly lease: Lease };
}

export function emitAnswer(emitter: Emitter<RegistryEvents>, answer: RegistryAnswer): void {
  switch (answer.type) {
    case 'lease.granted':
      return emitGranted(emitter, answer);
    case 'lease.refused':
      return emitter.emit('lease.refused', {
        runId: answer.runId,
        workerId: answer.workerId,
        lease: { ...answer.lease },
      });
    case 'lease.renewed':
    case 'lease.released':
      return emitter.emit(answer.type, { lease: { ...answer.lease } });
    case 'lease.invalid':
      if (answer.expired) emitter.emit('lease.expired', { lease: { ...answer.expired } });
      return;
    case 'lease.lapsed':
      for (const lease of answer.expired) emitter.emit('lease.expired', { lease: { ...lease } });
      return;
  }
}

function emitGranted(
  emitter: Emitter<RegistryEvents>,
  answer: Extract<RegistryAnswer, { type: 'lease.granted' }>,
): void {
  const { lease, previous, extended } = answer;
  if (extended) return emitter.emit('lease.renewed', { lease: { ...lease } });
  if (previous) emitter.emit('lease.takenOver', { previous: { ...previous }, lease: { ...lease } });
  emitter.emit('lease.granted', { lease: { ...lease } });
}
