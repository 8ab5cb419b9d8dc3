/**
 * The protocol as a model: the client believes, the store decides. Requests and replies are lost, late and reordered; time
 * passes at the store in ticks, and a worker's clock may be one tick behind it. What must never be: two workers who
 * believe, and a stale write.
 */
import type { ProtocolBounds, ProtocolDesign } from './protocol-design.ts';
import type { Message, ProtocolState } from './protocol-state.ts';
import { decode, encode, initialState, withoutMessage } from './protocol-state.ts';
import { delivered } from './protocol-store.ts';
import { answered, withoutLapsed, workerSteps } from './protocol-worker.ts';
import type { Model, Outcome } from './search.ts';

type Edge = readonly [name: string, next: Outcome<ProtocolState>];

/** @param mayOverlap - leaves two believers be, and looks for a stale write alone. */
export function protocolModel(
  design: ProtocolDesign,
  bounds: ProtocolBounds,
  mayOverlap = false,
): Model<ProtocolState> {
  return {
    initial: initialState(bounds.workers),
    encode,
    decode: (key) => decode(key, bounds.workers),
    *steps(state) {
      yield* tickSteps(state, bounds);
      for (let worker = 0; worker < bounds.workers; worker += 1) yield* workerSteps(state, worker, design, bounds);
      for (const message of state.messages) {
        const name = nameOf(message);
        yield [`${name} is lost`, withoutMessage(state, message)];
        const next =
          message.reply === null ? delivered(state, message, design, bounds) : answered(state, message, design);
        if (next !== null) yield [`${name} arrives`, mayOverlap ? next : unlessOverlap(next)];
      }
    },
  };
}

/** A tick of the store's clock. Every worker's clock catches up or is a tick behind, and never goes back. */
function* tickSteps(state: ProtocolState, { ticks, workers }: ProtocolBounds): Generator<Edge> {
  if (state.now >= ticks) return;
  for (let lags = 0; lags < 2 ** workers; lags += 1) {
    const behind = state.workers.map((worker, at) => ({ ...worker, lag: (lags >> at) & 1 }));
    const who = behind.flatMap(({ lag }, at) => (lag === 1 ? [at] : []));
    const name = who.length === 0 ? 'a tick' : `a tick, ${who.join(' and ')} a tick behind`;
    yield [name, withoutLapsed({ ...state, now: state.now + 1, workers: behind })];
  }
}

function unlessOverlap(next: Outcome<ProtocolState>): Outcome<ProtocolState> {
  if ('violation' in next) return next;
  return next.workers.filter(({ lease }) => lease !== null).length > 1 ? { violation: 'two believers' } : next;
}

function nameOf({ kind, worker, acquisition, reply }: Message): string {
  return reply === null ? `${worker}'s ${kind} ${acquisition}` : `"${reply}" to ${worker}'s ${kind} ${acquisition}`;
}
