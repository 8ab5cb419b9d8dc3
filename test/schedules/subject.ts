/** What is put to the test: the shipped manager, or one that is broken on purpose. */
import type { Clock } from '../../src/clock.ts';
import { LeaseManager } from '../../src/manager/lease-manager.ts';
import type { AcquireOptions } from '../../src/manager/lease-manager.ts';
import type { HeldLease } from '../../src/manager/held-lease.ts';
import type { LeaseManagerOptions } from '../../src/manager/settings.ts';
import type { LeaseStore } from '../../src/stores/store.ts';

export interface Subject {
  hold(runId: string, options: AcquireOptions, work: (lease: HeldLease) => Promise<unknown>): Promise<unknown>;
  close(): Promise<void>;
  /** The manager behind it. */
  readonly leases: LeaseManager;
}

export type MakeSubject = (store: LeaseStore, options: LeaseManagerOptions & { readonly clock: Clock }) => Subject;

export const shipped: MakeSubject = (store, options) => subjectOf(new LeaseManager(store, options));

/** The manager with parts replaced. */
export function subjectOf(leases: LeaseManager, replaced: Partial<Subject> = {}): Subject {
  return {
    leases,
    hold: (runId, options, work) => leases.hold(runId, options, work),
    close: () => leases.close(),
    ...replaced,
  };
}
