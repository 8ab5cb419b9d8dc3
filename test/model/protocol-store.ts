/**
 * The store's side: what it does with a request, in one step. It decides by the shipped rules (`isExpired`, `mayExtend`,
 * `grant`, `extend`, `names`). The row stands for a database's lease row; the fence is compared as B16 says.
 */
import type { AcquireAsk, ChartLease } from '../../machines/lease.rules.ts';
import { extend, grant, isExpired, mayExtend } from '../../machines/lease.rules.ts';
import type { LeaseRef } from '../../src/lease.ts';
import { names } from '../../src/stores/lost-reason.ts';
import type { ProtocolBounds, ProtocolDesign } from './protocol-design.ts';
import type { Message, ProtocolState, Reply, StoreRow } from './protocol-state.ts';
import { withMessage, withoutMessage } from './protocol-state.ts';
import type { Outcome } from './search.ts';

const RUN = 'run';

/** The request arrives. Null: it would need a token beyond the bounds. */
export function delivered(
  state: ProtocolState,
  message: Message,
  design: ProtocolDesign,
  bounds: ProtocolBounds,
): Outcome<ProtocolState> | null {
  const arrived = withoutMessage(state, message);
  switch (message.kind) {
    case 'acquire':
      return acquired(arrived, message, design, bounds);
    case 'renew':
      return renewed(arrived, message, design);
    case 'release':
      return isNamed(message, state.row, design) ? { ...arrived, row: { ...state.row!, released: true } } : arrived;
    case 'write':
      return written(arrived, message, design);
    default:
      return message.kind satisfies never;
  }
}

function acquired(
  state: ProtocolState,
  message: Message,
  design: ProtocolDesign,
  bounds: ProtocolBounds,
): ProtocolState | null {
  const { row, fence } = state;
  const ask: AcquireAsk = {
    workerId: workerIdOf(message.worker, design),
    fencingToken: Math.max(row?.token ?? 0, fence.token) + 1,
    acquisitionId: acquisitionIdOf(message.acquisition, design),
    reacquire: design.reacquire,
    now: state.now,
    ttlSeconds: design.ttl,
  };
  if (!isLiveRow(row, state, design)) {
    if (ask.fencingToken > bounds.grants) return null;
    return replied({ ...state, row: rowOf(grant(RUN, ask)) }, message, 'granted', ask.fencingToken);
  }
  const lease = leaseOf(row, design);
  if (!mayExtend(lease, ask)) return replied(state, message, 'held', 0);
  // B4: a fence row that carries the token moves on with it.
  const moved = fence.token === row.token ? { token: row.token, acquisition: message.acquisition } : fence;
  return replied({ ...state, row: rowOf(extend(lease, ask)), fence: moved }, message, 'granted', row.token);
}

function renewed(state: ProtocolState, message: Message, design: ProtocolDesign): ProtocolState {
  const { row, now } = state;
  if (!isNamed(message, row, design) || !isLiveRow(row, state, design)) return replied(state, message, 'lost', 0);
  const lease = leaseOf(row, design);
  const by = { now, ttlSeconds: design.ttl, acquisitionId: lease.acquisitionId };
  return replied({ ...state, row: rowOf(extend(lease, by)) }, message, 'renewed', message.token);
}

/** B16: raises the fence, or is refused by it, and looks at the lease row. */
function written(state: ProtocolState, message: Message, design: ProtocolDesign): Outcome<ProtocolState> {
  const { token, acquisition } = message;
  const { fence, row } = state;
  if (design.fenced) {
    const equal = fence.token === token && (!design.acquisitionIds || fence.acquisition === acquisition);
    if (!(fence.token < token || equal) || !isNamed(message, row, design)) return state;
  }
  const last = state.written;
  const older = design.acquisitionIds && last.token === token && last.acquisition !== acquisition;
  const retired = older && row?.token === token && row.acquisition !== acquisition;
  if (token < last.token || retired) return { violation: 'a stale write' };
  return { ...state, fence: { token, acquisition }, written: { token, acquisition } };
}

function replied(state: ProtocolState, message: Message, reply: Reply, token: number): ProtocolState {
  return withMessage(state, { ...message, reply, token });
}

/** Whether the message names the newest lease, by what it knows of it, and that was not released. */
function isNamed({ worker, token, acquisition }: Message, row: StoreRow | null, design: ProtocolDesign): boolean {
  if (row === null || row.released) return false;
  const shown = {
    runId: RUN,
    workerId: workerIdOf(worker, design),
    fencingToken: token === 0 ? undefined : token,
    acquisitionId: acquisitionIdOf(acquisition, design),
  };
  return names(shown, refOf(row));
}

function isLiveRow(row: StoreRow | null, { now }: ProtocolState, { expiresEarly }: ProtocolDesign): row is StoreRow {
  return row !== null && !row.released && !isExpired(row, now + expiresEarly);
}

function refOf({ workerId, token, acquisition }: StoreRow): LeaseRef {
  return { runId: RUN, workerId, fencingToken: token, acquisitionId: `${acquisition}` };
}

function leaseOf({ workerId, token, acquisition, expiresAt }: StoreRow, design: ProtocolDesign): ChartLease {
  return { workerId, leaseId: '', fencingToken: token, expiresAt, acquisitionId: acquisitionIdOf(acquisition, design) };
}

function rowOf({ workerId, fencingToken: token, expiresAt, acquisitionId }: ChartLease): StoreRow {
  return { token, acquisition: Number(acquisitionId ?? 0), workerId, expiresAt, released: false };
}

function workerIdOf(worker: number, { oneWorkerId }: ProtocolDesign): string {
  return oneWorkerId ? '0' : `${worker}`;
}

function acquisitionIdOf(acquisition: number, { acquisitionIds }: ProtocolDesign): string | undefined {
  return acquisitionIds ? `${acquisition}` : undefined;
}
