/**
 * A scenario: a story of one run with the right answer to every step, as plain JSON for implementations in any language.
 *
 * Answers are relations, never numbers: a registry counts its tokens 1, 2, 3, and a store need not. Times are parts of the
 * ttl. A lease has a name of its own, `lease-1`, so that later steps can claim it.
 */
import type { Reacquire, RunState } from '../lease.ts';

/** A story of one run, with the right answer to every step. */
export interface Scenario {
  readonly id: string;
  /** Where the run stands, what happens to it, and the answer, as a sentence. Unique. */
  readonly title: string;
  /** The chart's rule of the last step, R1 to R9, or null where nothing changes. */
  readonly rule: string | null;
  readonly steps: readonly Step[];
}

/** One call, or some time, and what is seen after it. */
export type Step = AcquireStep | ClaimStep | ExpireStep | AdvanceStep;
/** The two workers of every scenario. */
export type Worker = 'worker-a' | 'worker-b';

/** A worker asks for the run. */
export interface AcquireStep {
  readonly call: 'acquire';
  readonly worker: Worker;
  /** The acquisition id, where leases carry one. One that came before repeats that acquire. */
  readonly acquisition?: string;
  readonly reacquire: Reacquire;
  readonly expect:
    | {
        readonly answer: 'granted';
        /** The lease's name. One that came before is that same lease, extended. */
        readonly lease: string;
        /** `new`: above every earlier token of the run. `same`: that of the lease that was current. */
        readonly token: 'new' | 'same';
      }
    | { readonly answer: 'held'; readonly by: string };
  readonly after: After;
}

/** Somebody claims that a lease is theirs, to extend or to end it. */
export interface ClaimStep {
  readonly call: 'heartbeat' | 'release';
  readonly claim: {
    /** The lease that is claimed, or null where none was ever given out. */
    readonly lease: string | null;
    readonly change: ClaimChange;
  };
  readonly expect: { readonly accepted: boolean };
  readonly after: After;
}

/** `never-issued`: with a token above every one of the run. `another-worker`: in the other worker's name. */
export type ClaimChange = 'none' | 'never-issued' | 'another-worker';

/** The run is told the time, or just looked at. No answer, and nothing that another call could notice. */
export interface ExpireStep {
  readonly call: 'expire';
  readonly after: After;
}

/** Time passes. */
export interface AdvanceStep {
  readonly call: 'advance';
  /** So much time passes, in parts of the ttl. */
  readonly ttls: number;
  readonly after: After;
}

/** What anybody sees of the run after the step. `lease` alone is valid, exactly while the state is `held`. */
export interface After {
  /** `expired`: past its ttl, inclusive, and nobody took over. */
  readonly state: RunState;
  /** The current lease. */
  readonly lease: string | null;
  /** A lease with the highest token so far, the fence. */
  readonly newest: string | null;
  readonly ttlsLeft: number;
}
