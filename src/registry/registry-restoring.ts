import type { ActorLogic, Snapshot } from 'xstate';
import type { RegistryEvent } from '../../machines/registry.events.ts';
import type { PersistedRegistry, RegistryInput, RegistrySnapshot } from '../../machines/registry.logic.ts';
import { registryLogic as unchecked } from '../../machines/registry.logic.ts';
import { readRecord } from './registry-record.ts';

type Logic = ActorLogic<RegistrySnapshot, RegistryEvent, RegistryInput>;

/** A registry that could not be restored. It runs nothing, and what was written down of it stays as it was. */
type Unreadable = RegistrySnapshot & {
  readonly unreadable?: { readonly persisted: Snapshot<unknown>; readonly error: unknown };
};

/**
 * How the registry's actor goes on from what was written down. A record that contradicts itself fails when the actor is
 * started: a parent machine starts only the children that were restored, and would never hear of one that was not.
 */
export const restoring: Required<Pick<Logic, 'restoreSnapshot' | 'start' | 'getPersistedSnapshot'>> = {
  restoreSnapshot: (persisted, scope) => {
    try {
      const record = readRecord((persisted as PersistedRegistry).record);
      return unchecked.restoreSnapshot!({ ...persisted, record } as PersistedRegistry, scope);
    } catch (error) {
      const unreadable: Unreadable = {
        ...unchecked.getInitialSnapshot(scope, { ttlSeconds: 1 }),
        unreadable: { persisted, error },
      };
      return unreadable;
    }
  },
  start: (snapshot: Unreadable) => {
    if (snapshot.unreadable) throw snapshot.unreadable.error;
  },
  getPersistedSnapshot: (snapshot: Unreadable) =>
    snapshot.unreadable?.persisted ?? unchecked.getPersistedSnapshot(snapshot),
};
