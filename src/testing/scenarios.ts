/**
 * The scenarios of a lease, generated from the lease machine: one for each edge of the environment's model, made of the
 * shortest path to the edge's source and the edge itself.
 */
import { getShortestPaths } from '@xstate/graph';
import type { ActorLogic } from 'xstate';
import type { EnvironmentEvent, ScenarioKind, World } from './environment.ts';
import { eventsIn, happen, initialWorld, keyOf } from './environment.ts';
import type { Scenario } from './scenario.ts';

/** The model, as logic that `@xstate/graph` explores. */
export const environmentLogic: ActorLogic<World, EnvironmentEvent, ScenarioKind> = {
  getInitialSnapshot: (_scope, kind) => initialWorld(kind),
  transition: happen,
  getPersistedSnapshot: (world) => world,
};

/** How to explore it. `limit` is far above the size of the model, so that a model that explodes fails instead of hanging. */
export const explorationOf = (kind: ScenarioKind) => ({
  input: kind,
  events: eventsIn,
  serializeState: keyOf,
  serializeEvent: (event: EnvironmentEvent) => JSON.stringify(event),
  limit: 5_000,
});

const generated = new Map<ScenarioKind, readonly Scenario[]>();

/**
 * All scenarios of that kind, in a fixed order: `store` for leases that carry an acquisition id, `registry` for leases that
 * do not. Plain data, the same in every process of one version.
 */
export function scenarios(kind: ScenarioKind): readonly Scenario[] {
  let all = generated.get(kind);
  if (all === undefined) generated.set(kind, (all = generate(kind)));
  return all;
}

function generate(kind: ScenarioKind): readonly Scenario[] {
  const sources = getShortestPaths(environmentLogic, explorationOf(kind)).map(({ steps }) =>
    // Told again from the start, since a path's own states can come from another path to the same state of the model.
    steps
      .map(({ event }) => event)
      .filter(({ type }) => !type.startsWith('xstate.'))
      .reduce(happen, initialWorld(kind)),
  );
  const edges = sources.flatMap((source) => eventsIn(source).map((event) => ({ source, event })));
  return edges.map(({ source, event }, index) => {
    const { steps, rule } = happen(source, event);
    const id = `${kind}-${String(index + 1).padStart(3, '0')}`;
    return { id, title: titleOf(source, event, steps.at(-1)!), rule, steps };
  });
}

function titleOf(source: World, event: EnvironmentEvent, step: Scenario['steps'][number]): string {
  return `${keyOf(source)}: ${eventTitle(event, source)} ${answerTitle(step)}`;
}

function eventTitle(event: EnvironmentEvent, { kind, leases }: World): string {
  switch (event.type) {
    case 'acquire': {
      const who = leases.length === 0 ? 'a worker' : `the ${event.by} worker`;
      const id = kind === 'registry' ? '' : event.acquisition === 'fresh' ? ', with a fresh id' : ', repeating its id';
      return `acquire by ${who} (${event.reacquire}${id})`;
    }
    case 'heartbeat':
    case 'release':
      return `${event.type} with ${CLAIM_TITLES[event.claim]}`;
    case 'expire':
      return 'being told the time';
    case 'advance':
      return 'half a ttl more';
  }
}

const CLAIM_TITLES = {
  current: 'the current lease',
  stale: 'the stale lease',
  'never-issued': 'a token never issued',
  'another-worker': "the other worker's name",
} as const;

function answerTitle(step: Scenario['steps'][number]): string {
  switch (step.call) {
    case 'acquire':
      if (step.expect.answer === 'held') return 'is refused';
      return step.expect.token === 'new' ? 'is granted with a new token' : 'extends, with the same token';
    case 'heartbeat':
    case 'release':
      return step.expect.accepted ? 'is accepted' : 'is refused';
    default:
      return step.after.state === 'free' ? 'leaves it free' : `leaves the lease ${step.after.state}`;
  }
}
