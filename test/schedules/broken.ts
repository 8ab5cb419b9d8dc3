/** Managers with one error each, made by wrapping the shipped one. The witness must find them. */
import { momentOf } from '../../src/manager/worker-deadline.ts';
import type { HeldLease } from '../../src/manager/held-lease.ts';
import { LeaseManager } from '../../src/manager/lease-manager.ts';
import { LeaseLostError } from '../../src/errors.ts';
import type { LeaseStore } from '../../src/stores/store.ts';
import type { MakeSubject } from './subject.ts';
import { subjectOf } from './subject.ts';

/** The property that finds it, and how it is made. */
export interface Broken {
  readonly property: string;
  readonly make: MakeSubject;
}

export const brokenManagers: Readonly<Record<string, Broken>> = {
  'the deadline counts from the reply': { property: 'C1', make: (store, options) => countingFromReply(store, options) },
  'there is no margin': {
    property: 'C1',
    make: (store, options) => subjectOf(new LeaseManager(store, { ...options, granularitySeconds: 0 })),
  },
  'a late success revives the lease': { property: 'C4', make: (store, options) => revived(store, options) },
  'a failed renewal is sent again by the client, whatever the time is': {
    property: 'C3',
    make: (store, options) => {
      const renew: LeaseStore['renew'] = (...call) =>
        store.renew(...call).catch(async () => {
          await new Promise<void>((resolve) => options.clock.after(4, resolve));
          return renew(...call);
        });
      return subjectOf(new LeaseManager(storeWith(store, { renew }), options));
    },
  },
  'every renewal is sent twice': {
    property: 'C7',
    make: (store, options) => {
      const renew: LeaseStore['renew'] = (...call) => {
        store.renew(...call).catch(() => undefined);
        return store.renew(...call);
      };
      return subjectOf(new LeaseManager(storeWith(store, { renew }), options));
    },
  },
  "the caller's abort releases at once, while the work runs": {
    property: 'C10',
    make: (store, options) => {
      const leases = new LeaseManager(store, options);
      return subjectOf(leases, {
        hold: (runId, asked, work) =>
          leases.hold(runId, asked, (lease) => {
            asked.signal?.addEventListener('abort', () => void lease.release().catch(() => undefined));
            return work(lease);
          }),
      });
    },
  },
  'a failing release hides what the work gave': {
    property: 'C9',
    make: (store, options) => {
      const leases = new LeaseManager(store, options);
      return subjectOf(leases, {
        hold: async (runId, asked, work) => {
          const lease = await leases.acquire(runId, asked);
          try {
            return await work(lease);
          } finally {
            await lease.release();
          }
        },
      });
    },
  },
  'a result comes out though the lease was lost': {
    property: 'C9',
    make: (store, options) => {
      const leases = new LeaseManager(store, options);
      return subjectOf(leases, {
        hold: (runId, asked, work) =>
          leases.hold(runId, asked, work).catch((error: unknown) => {
            if (error instanceof LeaseLostError && error.result !== undefined) return error.result;
            throw error;
          }),
      });
    },
  },
  'a listener stays on the signal of the caller': {
    property: 'C14',
    make: (store, options) => {
      const leases = new LeaseManager(store, options);
      return subjectOf(leases, {
        hold: (runId, asked, work) => {
          asked.signal?.addEventListener('abort', () => undefined);
          return leases.hold(runId, asked, work);
        },
      });
    },
  },
  'a timer stays': {
    property: 'C14',
    make: (store, options) => {
      const leases = new LeaseManager(store, options);
      return subjectOf(leases, {
        hold: (runId, asked, work) => {
          options.clock.after(3600, () => undefined);
          return leases.hold(runId, asked, work);
        },
      });
    },
  },
  'a rejection is handled by nobody': {
    property: 'C14',
    make: (store, options) => {
      const leases = new LeaseManager(store, options);
      return subjectOf(leases, {
        hold: (runId, asked, work) => {
          const holding = leases.hold(runId, asked, work);
          void holding.finally(() => undefined);
          return holding;
        },
      });
    },
  },
  'the abort of the caller waits for the answer': {
    property: 'C12',
    make: (store, options) => {
      const leases = new LeaseManager(store, options);
      return subjectOf(leases, {
        hold: (runId, { signal, ...asked }, work) =>
          leases.hold(runId, asked, (lease) => {
            signal?.throwIfAborted();
            return work(lease);
          }),
      });
    },
  },
  'a grant that was on its way is left behind': {
    property: 'C12',
    make: (store, options) => {
      const release: LeaseStore['release'] = async (lease, how) =>
        lease.fencingToken === undefined ? false : store.release(lease, how);
      return subjectOf(new LeaseManager(storeWith(store, { release }), options));
    },
  },
  'a release is tried for ever': {
    property: 'C17',
    make: (store, options) => subjectOf(new LeaseManager(store, { ...options, releaseTimeoutSeconds: 1e5 })),
  },
};

/** What the work is told is left grows by the time that the last good answer took. */
const countingFromReply: MakeSubject = (store, options) => {
  let lag = 0;
  const timed = async <Answer>(send: () => Promise<Answer>): Promise<Answer> => {
    const sentAt = momentOf(options.clock);
    const answer = await send();
    lag = options.clock.monotonicSeconds() - sentAt.monotonicSeconds;
    return answer;
  };
  const acquire: LeaseStore['acquire'] = (...call) => timed(() => store.acquire(...call));
  const renew: LeaseStore['renew'] = (...call) => timed(() => store.renew(...call));
  const leases = new LeaseManager(storeWith(store, { acquire, renew }), options);
  return subjectOf(leases, {
    hold: (runId, asked, work) =>
      leases.hold(runId, asked, (lease) => {
        const remainingSeconds = (): number => (lease.loss === null ? lease.remainingSeconds() + lag : 0);
        return work(leaseWith(lease, { remainingSeconds }));
      }),
  });
};

/** Whenever a renewal succeeds, the work is told that its lease lives from then on. */
const revived: MakeSubject = (store, options) => {
  let until = 0;
  const renew: LeaseStore['renew'] = async (leases, ttlSeconds, how) => {
    const results = await store.renew(leases, ttlSeconds, how);
    if (results[0]?.status === 'renewed') until = options.clock.monotonicSeconds() + ttlSeconds;
    return results;
  };
  const leases = new LeaseManager(storeWith(store, { renew }), options);
  return subjectOf(leases, {
    hold: (runId, asked, work) =>
      leases.hold(runId, asked, (lease) => {
        const remainingSeconds = (): number => {
          const left = lease.remainingSeconds();
          return left > 0 ? left : Math.max(0, until - options.clock.monotonicSeconds());
        };
        return work(leaseWith(lease, { remainingSeconds }));
      }),
  });
};

function storeWith(store: LeaseStore, replaced: Partial<LeaseStore>): LeaseStore {
  const { acquire, renew, release } = store;
  return {
    ...store,
    acquire: (...call) => acquire.apply(store, call),
    renew: (...call) => renew.apply(store, call),
    release: (...call) => release.apply(store, call),
    ...replaced,
  };
}

/** As much of a lease as the work here asks of it. */
function leaseWith(lease: HeldLease, { remainingSeconds }: Pick<HeldLease, 'remainingSeconds'>): HeldLease {
  const { signal } = lease;
  const told: Pick<HeldLease, 'signal' | 'remainingSeconds' | 'assertHeld'> = {
    signal,
    remainingSeconds,
    assertHeld: () => lease.assertHeld(),
  };
  return told as HeldLease;
}
