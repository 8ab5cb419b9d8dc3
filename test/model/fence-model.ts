/**
 * The fence as a model: a lease row, a fence row with its lock, one document, and workers whose accesses are open
 * transactions. Each step is what a database does atomically. Time is one step: the lease may expire at any moment.
 */
import type { Model } from './search.ts';

/** An ownership: worker, token and acquisition. Acquisitions are numbered in the order in which they happened. */
interface Handle {
  token: number;
  acquisition: number;
}

interface Transaction extends Handle {
  /** `checked` has raised and locked the fence and looked at the lease; `read` has read the document as well. */
  phase: 'opened' | 'raised' | 'checked' | 'read';
  /** Of the document that it read, or -1. */
  version: number;
}

interface State {
  lease: (Handle & { worker: number; status: 'live' | 'expired' | 'released' }) | null;
  fence: Handle & { lockedBy: number | null };
  document: { version: number; by: Handle };
  issued: number;
  acquisitions: number;
  /** What each worker believes to have; a worker keeps its old handle until it is refused or acquires. */
  handles: (Handle | null)[];
  transactions: (Transaction | null)[];
}

/** How the shipped fence works. A broken variant turns one of them round. */
export interface FenceDesign {
  readonly locksFence: boolean;
  readonly checksLease: boolean;
  readonly readsAfterRaising: boolean;
  readonly comparesAcquisition: boolean;
  readonly reacquireMovesFence: boolean;
  readonly reacquireWaits: boolean;
  readonly keepsLeaseRow: boolean;
}

export const SHIPPED: FenceDesign = {
  locksFence: true,
  checksLease: true,
  readsAfterRaising: true,
  comparesAcquisition: true,
  reacquireMovesFence: true,
  reacquireWaits: true,
  keepsLeaseRow: true,
};

export interface FenceBounds {
  readonly workers: number;
  /** Whether all workers share one worker id, as two processes that were given the same one do. */
  readonly oneWorkerId?: boolean;
  readonly acquisitions: number;
  readonly commits: number;
}

type Step = readonly [string, State | { readonly violation: string }];

export function fenceModel(design: FenceDesign, bounds: FenceBounds): Model<State> {
  const none: Handle = { token: 0, acquisition: 0 };
  const initial: State = {
    lease: null,
    fence: { ...none, lockedBy: null },
    document: { version: 0, by: none },
    issued: 0,
    acquisitions: 0,
    handles: Array.from({ length: bounds.workers }, () => null),
    transactions: Array.from({ length: bounds.workers }, () => null),
  };
  return {
    initial,
    *steps(state) {
      if (state.lease?.status === 'live') yield ['expire', change(state, (next) => (next.lease!.status = 'expired'))];
      for (let worker = 0; worker < bounds.workers; worker += 1) {
        yield* acquireSteps(state, worker, design, bounds);
        yield* releaseSteps(state, worker, design);
        yield* accessSteps(state, worker, design, bounds);
      }
    },
  };
}

function change(state: State, edit: (next: State) => unknown): State {
  const next = structuredClone(state);
  edit(next);
  return next;
}

/** Of a free or expired run: the next token. Of one's own live lease: the same token, a new acquisition. */
function* acquireSteps(state: State, worker: number, design: FenceDesign, bounds: FenceBounds): Generator<Step> {
  if (state.acquisitions >= bounds.acquisitions || state.transactions[worker]) return;
  const { lease, fence } = state;
  const workerId = bounds.oneWorkerId ? 0 : worker;
  const acquisition = state.acquisitions + 1;
  if (lease === null || lease.status !== 'live') {
    const token = Math.max(lease?.token ?? 0, fence.token) + 1;
    if (token <= state.issued) return yield [`${worker} acquires`, { violation: 'a token was issued twice' }];
    yield [
      `${worker} acquires token ${token}`,
      change(state, (next) => {
        next.lease = { token, acquisition, worker: workerId, status: 'live' };
        next.issued = token;
        next.acquisitions = acquisition;
        next.handles[worker] = { token, acquisition };
      }),
    ];
  } else if (lease.worker === workerId && !(design.reacquireWaits && fence.lockedBy !== null)) {
    yield [
      `${worker} acquires again, token ${lease.token}`,
      change(state, (next) => {
        next.lease!.acquisition = acquisition;
        if (design.reacquireMovesFence && fence.token === lease.token) next.fence.acquisition = acquisition;
        next.acquisitions = acquisition;
        next.handles[worker] = { token: lease.token, acquisition };
      }),
    ];
  }
}

function* releaseSteps(state: State, worker: number, design: FenceDesign): Generator<Step> {
  const handle = state.handles[worker];
  if (!handle || state.transactions[worker] || !carries(state, handle)) return;
  yield [
    `${worker} releases`,
    change(state, (next) => {
      if (design.keepsLeaseRow) next.lease!.status = 'released';
      else next.lease = null;
      next.handles[worker] = null;
    }),
  ];
}

function* accessSteps(state: State, worker: number, design: FenceDesign, bounds: FenceBounds): Generator<Step> {
  const handle = state.handles[worker];
  const transaction = state.transactions[worker];
  if (!transaction) {
    if (handle && state.document.version < bounds.commits) yield openStep(state, worker, handle, design);
    return;
  }
  if (transaction.phase === 'opened') yield* raiseStep(state, worker, transaction, design);
  else if (transaction.phase === 'raised') yield* checkStep(state, worker, transaction, design);
  else if (transaction.phase === 'checked')
    yield [`${worker} reads`, change(state, (next) => readDocument(next, worker))];
  else yield* commitStep(state, worker, transaction, design);
  yield [`${worker} rolls back`, change(state, (next) => endTransaction(next, worker))];
}

/** In the right order nothing is read here. The broken one reads first, and waits for the fence afterwards. */
function openStep(state: State, worker: number, handle: Handle, design: FenceDesign): Step {
  const version = design.readsAfterRaising ? -1 : state.document.version;
  const name = design.readsAfterRaising ? `${worker} opens` : `${worker} opens and reads`;
  return [name, change(state, (next) => (next.transactions[worker] = { ...handle, phase: 'opened', version }))];
}

/** Raises and locks the fence, or waits, or is refused by it. */
function* raiseStep(state: State, worker: number, transaction: Transaction, design: FenceDesign): Generator<Step> {
  const { fence } = state;
  const { token, acquisition } = transaction;
  if (design.locksFence) {
    if (fence.lockedBy !== null) return;
    const equal = fence.token === token && (!design.comparesAcquisition || fence.acquisition === acquisition);
    if (!(fence.token < token || equal)) return yield* refuse(state, worker, transaction);
  }
  yield [
    `${worker} raises the fence to ${token}`,
    change(state, (next) => {
      if (design.locksFence) next.fence.lockedBy = worker;
      next.transactions[worker]!.phase = 'raised';
    }),
  ];
}

/** A fresh look at the lease row, after the fence was locked. */
function* checkStep(state: State, worker: number, transaction: Transaction, design: FenceDesign): Generator<Step> {
  const current = carries(state, transaction, design.comparesAcquisition);
  if (design.checksLease && !current) return yield* refuse(state, worker, transaction);
  if (!design.checksLease && !current && state.lease!.token > transaction.token) {
    return yield [`${worker} passes its check`, { violation: 'a check made after the take-over passed' }];
  }
  yield [`${worker} finds its lease`, change(state, (next) => (next.transactions[worker]!.phase = 'checked'))];
}

function readDocument(next: State, worker: number): void {
  const transaction = next.transactions[worker]!;
  transaction.phase = 'read';
  if (transaction.version < 0) transaction.version = next.document.version;
}

function* commitStep(state: State, worker: number, transaction: Transaction, design: FenceDesign): Generator<Step> {
  const { token, acquisition, version } = transaction;
  const { document } = state;
  const name = `${worker} commits under token ${token}`;
  if (token < document.by.token || (token === document.by.token && acquisition < document.by.acquisition)) {
    return yield [name, { violation: 'an older write landed after a newer one' }];
  }
  if (
    design.comparesAcquisition &&
    state.lease &&
    token === state.lease.token &&
    acquisition < state.lease.acquisition
  ) {
    return yield [name, { violation: 'an older acquisition committed after it was retired' }];
  }
  if (version !== document.version) return yield [name, { violation: 'an update was lost' }];
  yield [
    name,
    change(state, (next) => {
      next.document = { version: version + 1, by: { token, acquisition } };
      endTransaction(next, worker);
      if (design.locksFence) Object.assign(next.fence, { token, acquisition });
    }),
  ];
}

/** The access is refused and rolled back: it has raised nothing, and its worker stops. Never that of the current lease. */
function* refuse(state: State, worker: number, handle: Handle): Generator<Step> {
  if (carries(state, handle)) return yield [`${worker} is refused`, { violation: 'the current lease was refused' }];
  yield [
    `${worker} is refused`,
    change(state, (next) => {
      endTransaction(next, worker);
      next.handles[worker] = null;
    }),
  ];
}

function endTransaction(next: State, worker: number): void {
  if (next.fence.lockedBy === worker) next.fence.lockedBy = null;
  next.transactions[worker] = null;
}

/** Whether the lease row carries the handle, released or not told apart: expiry alone refuses nothing, a release does. */
function carries({ lease }: State, handle: Handle, comparesAcquisition = true): boolean {
  return (
    lease !== null &&
    lease.status !== 'released' &&
    lease.token === handle.token &&
    (!comparesAcquisition || lease.acquisition === handle.acquisition)
  );
}
