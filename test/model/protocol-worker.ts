/**
 * The worker's side, which stands for a manager and its keeper: one hold at a time, one request that is waited for, a
 * deadline. The deadline is counted by the shipped functions (`deadlineAfter`, `laterOf`, `secondsLeft`); both of a worker's
 * clocks are the same here. A request may be given up at any moment; its answer may still come.
 */
import type { KeeperTimes, Moment } from '../../machines/keeper.types.ts';
import type { Clock } from '../../src/clock.ts';
import { deadlineAfter, laterOf, momentOf, secondsLeft } from '../../src/manager/worker-deadline.ts';
import type { ProtocolBounds, ProtocolDesign } from './protocol-design.ts';
import type { Message, ProtocolState, WorkerState } from './protocol-state.ts';
import { localNow, withMessage, withoutMessage, withWorker } from './protocol-state.ts';

type Edge = readonly [name: string, next: ProtocolState];

/** What the worker may do of itself. The first to ask is worker 0: nothing but the names would differ otherwise. */
export function* workerSteps(
  state: ProtocolState,
  worker: number,
  design: ProtocolDesign,
  bounds: ProtocolBounds,
): Generator<Edge> {
  const { acquisition, waiting, lease, notBefore } = state.workers[worker]!;
  const maySend = state.messages.length < bounds.messages;
  if (waiting) yield [`${worker} gives up waiting`, givenUp(state, worker)];
  if (lease && maySend) {
    yield [`${worker} sends a write`, sent(state, worker, 'write', lease.token)];
    if (waiting) return;
    yield [`${worker} sends a renewal`, waitingFor(sent(state, worker, 'renew', lease.token), worker, 'renew')];
    const released = ended(sent(state, worker, 'release', lease.token), worker);
    const until = design.waitsOutDeadline ? lease.deadline : 0;
    yield [`${worker} releases`, withWorker(released, worker, { notBefore: until })];
  } else if (acquisition > 0 && !lease && !waiting) {
    if (maySend) yield [`${worker} asks again`, waitingFor(sent(state, worker, 'acquire', 0), worker, 'acquire')];
    if (maySend) yield [`${worker} withdraws`, ended(sent(state, worker, 'release', 0), worker)];
    yield [`${worker} stops asking`, ended(state, worker)];
  } else if (acquisition === 0 && maySend && state.drawn < bounds.holds && localNow(state, worker) >= notBefore) {
    if (state.drawn === 0 && worker > 0) return;
    const drawn = withWorker({ ...state, drawn: state.drawn + 1 }, worker, { acquisition: state.drawn + 1 });
    yield [`${worker} asks`, waitingFor(sent(drawn, worker, 'acquire', 0), worker, 'acquire')];
  }
}

/** A reply arrives. Null: nobody takes note of it, as if it were lost. */
export function answered(state: ProtocolState, message: Message, design: ProtocolDesign): ProtocolState | null {
  const { waiting, acquisition } = state.workers[message.worker]!;
  const isAwaited = design.matchesReplies ? !message.abandoned : waiting?.kind === message.kind;
  if (!isAwaited || !waiting) {
    const given = message.reply === 'granted' || message.reply === 'renewed';
    return given && acquisition !== message.acquisition ? givenBack(state, message) : null;
  }
  const sentAt = design.matchesReplies ? message.sentAt : waiting.sentAt;
  const arrived = withWorker(withoutMessage(state, message), message.worker, { waiting: null });
  const counted = deadlineFrom(design.countsFrom === 'sending' ? sentAt : localNow(state, message.worker), design);
  switch (message.reply) {
    case 'granted':
      return granted(arrived, message, counted);
    case 'renewed':
      return extended(arrived, message, counted);
    case 'lost':
      return ended(arrived, message.worker);
    default:
      return arrived;
  }
}

/** C2: the deadline is looked at whenever something is asked, so a worker whose deadline has passed believes no more. */
export function withoutLapsed(state: ProtocolState): ProtocolState {
  let next = state;
  for (const [worker, { lease }] of state.workers.entries()) {
    if (lease && leftUntil(lease.deadline, state, worker) <= 0) next = ended(givenUp(next, worker), worker);
  }
  return next;
}

/** C5: a grant whose deadline has passed on arrival is none. It counts as an ask without an answer. */
function granted(state: ProtocolState, { worker, token }: Message, deadline: number): ProtocolState {
  return leftUntil(deadline, state, worker) > 0 ? withWorker(state, worker, { lease: { token, deadline } }) : state;
}

function extended(state: ProtocolState, { worker }: Message, counted: number): ProtocolState {
  const { lease } = state.workers[worker]!;
  if (!lease) return state;
  const deadline = laterOf(momentAt(lease.deadline), momentAt(counted)).monotonicSeconds;
  return withWorker(state, worker, { lease: { ...lease, deadline } });
}

/** What came for a hold that has ended is released. */
function givenBack(state: ProtocolState, message: Message): ProtocolState {
  const release: Message = { ...message, kind: 'release', sentAt: 0, abandoned: true, reply: null };
  return withMessage(withoutMessage(state, message), release);
}

function sent(state: ProtocolState, worker: number, kind: Message['kind'], token: number): ProtocolState {
  const { acquisition } = state.workers[worker]!;
  const isAwaited = kind === 'acquire' || kind === 'renew';
  const sentAt = isAwaited ? momentOf(clockAt(localNow(state, worker))).monotonicSeconds : 0;
  return withMessage(state, { kind, worker, token, acquisition, sentAt, abandoned: !isAwaited, reply: null });
}

function waitingFor(state: ProtocolState, worker: number, kind: 'acquire' | 'renew'): ProtocolState {
  return withWorker(state, worker, { waiting: { kind, sentAt: localNow(state, worker) } });
}

function givenUp(state: ProtocolState, worker: number): ProtocolState {
  const messages = state.messages.map((message) =>
    message.worker === worker && !message.abandoned ? { ...message, abandoned: true } : message,
  );
  return withWorker({ ...state, messages }, worker, { waiting: null });
}

function ended(state: ProtocolState, worker: number): ProtocolState {
  const over: Partial<WorkerState> = { acquisition: 0, lease: null, waiting: null };
  return withWorker(state, worker, over);
}

function deadlineFrom(sentAt: number, { ttl, margin }: ProtocolDesign): number {
  const times = { ttlSeconds: ttl, marginSeconds: margin } as KeeperTimes;
  return deadlineAfter(momentAt(sentAt), times).monotonicSeconds;
}

function leftUntil(deadline: number, state: ProtocolState, worker: number): number {
  return secondsLeft(momentAt(deadline), clockAt(localNow(state, worker)));
}

function momentAt(seconds: number): Moment {
  return { monotonicSeconds: seconds, bootSeconds: seconds };
}

function clockAt(seconds: number): Clock {
  return { monotonicSeconds: () => seconds, bootSeconds: () => seconds, after: () => () => undefined };
}
