/** The protocol and the chart of a lease as one model: an uploader, a rival for the run, and time in halves of a ttl. */
import { getAdjacencyMap, getShortestPaths } from '@xstate/graph';
import { leaseIdOf, leaseMachine } from 'lessor/machines';
import { initialTransition, transition } from 'xstate';
import { uploadMachine } from './upload.machine.js';

export const TTL_SECONDS = 10;

/** What each event asks of the lease. */
const CALLS = { start: 'acquire', part: 'heartbeat', finish: 'release', rival: 'acquire', look: 'expire' };

export const initial = {
  status: 'active',
  upload: initialTransition(uploadMachine)[0],
  lease: initialTransition(leaseMachine, { runId: 'file' })[0],
  now: 0,
  tokens: 0,
  inHand: 0, // the token that the uploader got last
};

export function happen(before, { type }) {
  const { now, tokens, inHand } = before;
  if (type === 'wait') return { ...before, now: now + TTL_SECONDS / 2 };
  const workerId = type === 'rival' ? 'rival' : 'uploader';
  const fencingToken = CALLS[type] === 'acquire' ? tokens + 1 : inHand;
  const leaseId = leaseIdOf('file', workerId, fencingToken);
  const call = { type: CALLS[type], workerId, fencingToken, leaseId, now, ttlSeconds: TTL_SECONDS };
  const [lease] = transition(leaseMachine, before.lease, call);
  const accepted = lease.context.lease !== before.lease.context.lease;
  const [upload] = transition(uploadMachine, before.upload, { type, accepted });
  const granted = accepted && CALLS[type] === 'acquire';
  return {
    ...before,
    ...{ upload, lease, tokens: granted ? fencingToken : tokens },
    inHand: granted && type === 'start' ? fencingToken : inHand,
  };
}

const secondsLeft = ({ lease: { context }, now }) => Math.max(0, (context.lease?.expiresAt ?? 0) - now);

const model = { getInitialSnapshot: () => initial, transition: happen, getPersistedSnapshot: (snapshot) => snapshot };
const exploration = {
  events: (snapshot) =>
    [
      ...uploadMachine.states[snapshot.upload.value].ownEvents,
      'rival',
      'look',
      ...(secondsLeft(snapshot) > 0 ? ['wait'] : []),
    ].map((type) => ({ type })),
  // Whose the lease is and what is left of it, no token and no time: those would make every state a new one.
  serializeState: (snapshot) =>
    [snapshot.upload.value, snapshot.lease.value, snapshot.lease.context.lease?.workerId, secondsLeft(snapshot)].join(),
  serializeEvent: ({ type }) => type,
  limit: 1000,
};

/** A path for each edge of the model: the shortest one to where it starts, and the edge. */
export function paths() {
  const edges = getAdjacencyMap(model, exploration);
  return getShortestPaths(model, exploration).flatMap(({ state, steps }) => {
    const before = steps.map(({ event }) => event.type).filter((type) => !type.startsWith('xstate.'));
    return Object.keys(edges[exploration.serializeState(state)].transitions).map((event) => [...before, event]);
  });
}
