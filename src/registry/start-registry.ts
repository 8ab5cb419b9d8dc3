import { RegistryCaller } from '../../machines/registry.caller.ts';
import type { RegistryRecord } from '../../machines/registry.events.ts';
import type { RegistryInput } from '../../machines/registry.logic.ts';
import { persistedRegistry, registryLogic as unchecked } from '../../machines/registry.logic.ts';
import { filterAhead, wantsRun } from '../inspect/inspect-leases.ts';
import type { Inspector } from '../inspect/quiet-inspector.ts';
import { quietInspector } from '../inspect/quiet-inspector.ts';
import { registryLogic } from './registry-actor.ts';

export interface StartOptions extends Pick<RegistryInput, 'ttlSeconds' | 'reacquire'> {
  readonly inspect: Inspector | undefined;
  /** Of an earlier registry, to go on from. */
  readonly record: RegistryRecord | undefined;
}

/** Starts a registry's actor, which takes events from others too, and gives the caller to ask it. */
export function startRegistry({ ttlSeconds, reacquire, inspect, record }: StartOptions): RegistryCaller {
  const watched = (runId: string): boolean => inspect !== undefined && wantsRun(inspect, runId);
  const options = {
    id: 'registry',
    input: { ttlSeconds, reacquire, watched },
    ...(record && { snapshot: persistedRegistry(record, watched) }),
    ...(inspect && { inspect: quietInspector(inspect) }),
  };
  const caller = new RegistryCaller(unchecked, options, registryLogic.transition);
  if (inspect) filterAhead(caller.actor, inspect);
  caller.actor.start();
  return caller;
}
