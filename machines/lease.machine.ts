/**
 * One run: who has it. The chart moves only on events, so a run may sit in `held` after its ttl until an event tells it
 * the time. Whether a lease is live is therefore always `isLive(lease, claim, now)`, never `matches('held')`.
 *
 * The config is literal and names its guards and actions, so that Stately imports it; `lease.table.ts` compiles the same
 * config for the hot path, and the tests of every store are generated from it.
 */
import { assign, setup } from 'xstate';
import type { AcquireAsk, ChartLease, Claim } from './lease.rules.ts';
import { extend, grant, isCurrent, isExpired, mayExtend } from './lease.rules.ts';

/** The lease of a run, or null while the run is free. Plain JSON. */
export interface LeaseContext {
  readonly runId: string;
  readonly lease: ChartLease | null;
}

/** What can happen to a run. `now` and `ttlSeconds` are seconds; `now` is the caller’s. */
export type LeaseEvent =
  | ({ readonly type: 'acquire' } & AcquireAsk)
  | ({ readonly type: 'heartbeat'; readonly now: number; readonly ttlSeconds: number } & Claim)
  | ({ readonly type: 'release' } & Claim)
  | { readonly type: 'expire'; readonly now: number };

type EventOf<Type extends LeaseEvent['type']> = Extract<LeaseEvent, { type: Type }>;

/** The guards of the chart by name. A guard asked where no lease is answers no. */
export const leaseGuards = {
  isExpired: ({ lease }: LeaseContext, event: LeaseEvent) =>
    lease !== null && isExpired(lease, (event as EventOf<'expire'>).now),
  isCurrent: ({ lease }: LeaseContext, event: LeaseEvent) =>
    lease !== null && isCurrent(lease, event as EventOf<'release'>),
  mayExtend: ({ lease }: LeaseContext, event: LeaseEvent) =>
    lease !== null && mayExtend(lease, event as EventOf<'acquire'>),
};

/** What the chart does to the lease, by name: the run's next lease from its context and the event. */
export const leaseUpdates = {
  grant: ({ runId }: LeaseContext, event: LeaseEvent) => grant(runId, event as EventOf<'acquire'>),
  extend: ({ lease }: LeaseContext, event: LeaseEvent) => lease && extend(lease, event as EventOf<'heartbeat'>),
  clear: () => null,
};

/** The chart of one run: free, held, expired. Its guards and actions are the plain functions of `lease.rules.ts`. */
export const leaseMachine = setup({
  types: {
    context: {} as LeaseContext,
    events: {} as LeaseEvent,
    input: {} as { runId: string } | undefined,
  },
  guards: {
    isExpired: ({ context, event }) => leaseGuards.isExpired(context, event),
    isCurrent: ({ context, event }) => leaseGuards.isCurrent(context, event),
    mayExtend: ({ context, event }) => leaseGuards.mayExtend(context, event),
  },
  actions: {
    grant: assign({ lease: ({ context, event }) => leaseUpdates.grant(context, event) }),
    extend: assign({ lease: ({ context, event }) => leaseUpdates.extend(context, event) }),
    clear: assign({ lease: () => leaseUpdates.clear() }),
  },
}).createMachine({
  id: 'lease',
  description: 'One run: at most one worker has it.',
  context: ({ input }) => ({ runId: input?.runId ?? '', lease: null }),
  initial: 'free',
  states: {
    free: {
      description: 'Nobody has the run.',
      on: {
        acquire: {
          target: 'held',
          actions: 'grant',
          description: 'A new lease with the next token.',
          meta: { rule: 'R1' },
        },
      },
    },
    held: {
      description: 'One worker has the run. Its lease may be past expiry: ask isLive, not this state.',
      on: {
        acquire: [
          {
            guard: 'isExpired',
            target: 'held',
            actions: 'grant',
            description: 'Take over: a new lease with the next token.',
            meta: { rule: 'R2' },
          },
          {
            guard: 'mayExtend',
            actions: 'extend',
            description: 'The same worker again: the same token, lives ttlSeconds from now.',
            meta: { rule: 'R3' },
          },
        ],
        heartbeat: [
          {
            guard: 'isExpired',
            target: 'expired',
            description: 'Too late: nothing revives a lease.',
            meta: { rule: 'R4' },
          },
          {
            guard: 'isCurrent',
            actions: 'extend',
            description: 'Lives ttlSeconds from now.',
            meta: { rule: 'R5' },
          },
        ],
        release: {
          guard: 'isCurrent',
          target: 'free',
          actions: 'clear',
          description: 'Its worker gives the run back.',
          meta: { rule: 'R6' },
        },
        expire: {
          guard: 'isExpired',
          target: 'expired',
          description: 'The ttl has passed.',
          meta: { rule: 'R7' },
        },
      },
    },
    expired: {
      description:
        'The ttl has passed and nobody took over: the lease is still current, so only a release is left to it.',
      on: {
        acquire: {
          target: 'held',
          actions: 'grant',
          description: 'Take over: a new lease with the next token.',
          meta: { rule: 'R8' },
        },
        release: {
          guard: 'isCurrent',
          target: 'free',
          actions: 'clear',
          description: 'Late, but still its own: the run is free.',
          meta: { rule: 'R9' },
        },
      },
    },
  },
});
