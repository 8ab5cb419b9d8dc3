// The registry as it shows itself to an inspector: a few calls are made, and what was recorded is drawn.
import { createActor } from 'xstate';
import { registryLogic } from '../../dist/machines/registry.logic.js';

const TTL_SECONDS = 10;
const claim = (runId, workerId, fencingToken) => ({ leaseId: `${runId}:${workerId}:${fencingToken}`, fencingToken });

/** Each kind of call once at least, and runs that end in each state of the chart. */
const CALLS = [
  { type: 'lease.acquire', runId: 'run-1', workerId: 'worker-a', now: 0 },
  { type: 'lease.acquire', runId: 'run-2', workerId: 'worker-a', now: 0 },
  { type: 'lease.acquire', runId: 'run-3', workerId: 'worker-a', now: 0 },
  { type: 'lease.acquire', runId: 'run-1', workerId: 'worker-b', now: 4 },
  { type: 'lease.heartbeat', ...claim('run-3', 'worker-a', 3), now: 5 },
  { type: 'lease.expire', now: 10 },
  { type: 'lease.acquire', runId: 'run-1', workerId: 'worker-b', now: 10 },
  { type: 'lease.validate', runId: 'run-1', ...claim('run-1', 'worker-a', 1), now: 11 },
  { type: 'lease.release', ...claim('run-3', 'worker-a', 3) },
];

/** The registry and the lease actors that it spawned, as a chart: what each was sent and took, and where each ended. */
export function registryChart() {
  const events = new Map();
  const record = ({ type, actorRef, event, snapshot }) => {
    if (type !== '@xstate.snapshot' || event.type === 'xstate.init') return;
    events.set(actorRef.id, [...(events.get(actorRef.id) ?? []), { event, snapshot }]);
  };
  const actor = createActor(registryLogic, { id: 'registry', input: { ttlSeconds: TTL_SECONDS }, inspect: record });
  actor.start();
  const facts = CALLS.map((call) => {
    actor.send(call);
    return callLine(call, actor.getSnapshot().answer);
  });
  const { runs, context } = actor.getSnapshot();
  const children = [...events.keys()].filter((id) => id !== 'registry');
  const chart = {
    id: 'registry',
    description: registryLogic.config.description,
    initial: undefined,
    states: [
      stateLike('registry', {
        facts: [...facts, ...Object.entries(context).map(([name, value]) => fact(name, value))],
      }),
      ...children.map((id) => leaseState(id, runs.actorOf(id).getSnapshot())),
    ],
    transitions: children.map((id) => ({ source: 'registry', target: id, lines: events.get(id).map(eventLine) })),
  };
  actor.stop();
  return chart;
}

function callLine({ type, now, runId, leaseId }, answer) {
  const time = now === undefined ? '' : `${now}`;
  return [
    ['muted', `${time.padStart(2)} `],
    ['event', `${type.padEnd(16)}${(leaseId ?? runId ?? '').padEnd(18)}`],
    ['muted', '→ '],
    ['action', answer.type],
    ['guard', tokenOf(answer)],
  ];
}

function tokenOf({ type, lease }) {
  return lease && type !== 'lease.refused' ? ` token ${lease.fencingToken}` : '';
}

function leaseState(id, { value, context: { lease } }) {
  const facts = lease
    ? [fact('workerId', lease.workerId), fact('fencingToken', lease.fencingToken), fact('expiresAt', lease.expiresAt)]
    : [];
  return stateLike(id, { description: `lease, ${value}`, facts });
}

function eventLine({ event, snapshot }) {
  return [
    ['rule', (snapshot.rule ?? '-').padEnd(3)],
    ['event', event.type],
    ...(snapshot.rule === undefined ? [['muted', ' refused']] : [['muted', ` → ${snapshot.value}`]]),
  ];
}

function fact(name, value) {
  return [
    ['muted', `${name} `],
    ['event', String(value)],
  ];
}

function stateLike(id, { description, facts }) {
  return {
    id,
    name: id,
    description,
    final: false,
    initial: undefined,
    entry: [],
    exit: [],
    invokes: [],
    states: [],
    facts,
  };
}
