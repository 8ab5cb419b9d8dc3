import type { LeaseLostError } from '../errors.ts';
import type { HeldLease } from './held-lease.ts';

/** What a manager tells its listeners, for people and metrics. Each granted lease is told exactly one end, lost or released. */
export interface ManagerEvents {
  granted: {
    readonly lease: HeldLease;
    /** So many times the store was asked. */
    readonly attempts: number;
  };
  renewed: {
    readonly lease: HeldLease;
    /** How much was left when the renewal landed, in seconds: what gets smaller before a lease is lost. */
    readonly leftSeconds: number;
  };
  /** A renewal failed. It is retried until the deadline, and is no loss yet. */
  uncertain: {
    readonly lease: HeldLease;
    readonly error: unknown;
    /** So many in a row failed. */
    readonly failures: number;
    readonly leftSeconds: number;
  };
  lost: { readonly lease: HeldLease; readonly error: LeaseLostError };
  released: {
    readonly lease: HeldLease;
    /** The run was free afterwards by this release. False: the store had ended the lease, or could not be asked. */
    readonly freed: boolean;
    /** Why the store could not be asked, or null. The run is free after the ttl then. */
    readonly error: unknown;
  };
}
