/** How the protocol is meant, and what may be turned round in it. */
import type { Reacquire } from '../../src/lease.ts';

export interface ProtocolDesign {
  readonly ttl: number;
  readonly margin: number;
  /** From when a deadline counts. */
  readonly countsFrom: 'sending' | 'reply';
  /** Whether the store looks at the fence and at the lease row before it writes. */
  readonly fenced: boolean;
  /** By so many ticks the store takes a lease for expired too early. */
  readonly expiresEarly: number;
  readonly acquisitionIds: boolean;
  /** Whether a reply that belongs to a request which was given up is told from the reply to the one that is waited for. */
  readonly matchesReplies: boolean;
  readonly reacquire: Reacquire;
  /** Whether a worker that has released waits out its former deadline before it acquires again. */
  readonly waitsOutDeadline: boolean;
  /** Whether both workers have one worker id, as two processes that were given the same one. */
  readonly oneWorkerId: boolean;
}

/** With `reacquire: 'refuse'`, which a caller may choose. What `'extend'` costs, the default, is searched apart. */
export const SHIPPED: ProtocolDesign = {
  ttl: 2,
  margin: 1,
  countsFrom: 'sending',
  fenced: true,
  expiresEarly: 0,
  acquisitionIds: true,
  matchesReplies: true,
  reacquire: 'refuse',
  waitsOutDeadline: false,
  oneWorkerId: false,
};

export interface ProtocolBounds {
  readonly workers: number;
  readonly ticks: number;
  /** Tokens that the store may give out. */
  readonly grants: number;
  /** Holds that the workers may begin, together. */
  readonly holds: number;
  readonly messages: number;
}
