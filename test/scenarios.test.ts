import { adjacencyMapToArray, getAdjacencyMap, getShortestPaths } from '@xstate/graph';
import { describe, expect, it } from 'vitest';
import { MemoryStore } from '../src/stores/memory.ts';
import type { EnvironmentEvent, ScenarioKind, World } from '../src/testing/environment.ts';
import { eventsIn, happen, initialWorld, keyOf } from '../src/testing/environment.ts';
import type { Subject } from '../src/testing/play.ts';
import { playScenario } from '../src/testing/play.ts';
import { environmentLogic, explorationOf, scenarios } from '../src/testing/scenarios.ts';
import { StoreSubject } from '../src/testing/store-subject.ts';
import { MachineSubject, RegistryActorSubject, RegistrySubject, TableSubject } from './testing/subjects.ts';

/** The model's size. A change of it is noticed here, and is then either wanted or a mistake. */
const SIZES = { registry: { states: 20, edges: 229 }, store: { states: 26, edges: 330 } } as const;
const KINDS = ['registry', 'store'] as const;

const SUBJECTS: ReadonlyArray<readonly [name: string, kinds: readonly ScenarioKind[], create: () => Subject]> = [
  ['the lease machine', KINDS, () => new MachineSubject()],
  ['the compiled table', KINDS, () => new TableSubject()],
  ['LeaseRegistry', ['registry'], () => new RegistrySubject()],
  ["the registry's actor", KINDS, () => new RegistryActorSubject()],
  ['the memory store', ['store'], memorySubject],
];

describe.each(KINDS)('the model of the environment for a %s', (kind) => {
  it(`has ${SIZES[kind].states} states and ${SIZES[kind].edges} edges, and a scenario for each edge`, () => {
    const map = getAdjacencyMap(environmentLogic, explorationOf(kind));
    expect(Object.keys(map)).toHaveLength(SIZES[kind].states);
    expect(adjacencyMapToArray(map)).toHaveLength(SIZES[kind].edges);
    expect(scenarios(kind)).toHaveLength(SIZES[kind].edges);
  });

  it('tells each scenario by the shortest path to its edge, under a title of its own', () => {
    const lengths = getShortestPaths(environmentLogic, explorationOf(kind)).flatMap(({ state, weight }) =>
      eventsIn(state).map(() => weight + 1),
    );
    expect(scenarios(kind).map(({ steps }) => steps.length)).toEqual(lengths);
    expect(new Set(scenarios(kind).map(({ title }) => title)).size).toBe(SIZES[kind].edges);
    expect(new Set(scenarios(kind).map(({ id }) => id)).size).toBe(SIZES[kind].edges);
  });

  it('reaches every rule of the chart', () => {
    const rules = new Set(scenarios(kind).map(({ rule }) => rule));
    expect(rules).toEqual(new Set(['R1', 'R2', 'R3', 'R4', 'R5', 'R6', 'R7', 'R8', 'R9', null]));
  });

  it('keeps in a state all that an answer depends on: long random stories meet only edges that it knows', () => {
    const edges = adjacencyMapToArray(getAdjacencyMap(environmentLogic, explorationOf(kind)));
    const known = new Map(edges.map(({ state, event, nextState }) => [edgeKey(state, event), nextState]));
    const random = seededRandom(20_240_229);
    for (let story = 0; story < 100; story += 1) {
      let world = initialWorld(kind);
      for (let step = 0; step < 40; step += 1) {
        const events = eventsIn(world);
        const event = events[Math.floor(random() * events.length)]!;
        const expected = known.get(edgeKey(world, event))!;
        world = happen(world, event);
        expect({ key: keyOf(world), ...answerOf(world) }).toEqual({ key: keyOf(expected), ...answerOf(expected) });
      }
    }
  });
});

describe.each(SUBJECTS)('%s', (_name, kinds, create) => {
  it.each(kinds)('answers every scenario of a %s as the chart does', async (kind) => {
    let played = 0;
    for (const scenario of scenarios(kind)) {
      await playScenario(scenario, create());
      played += 1;
    }
    expect(played).toBe(SIZES[kind].edges);
  });
});

function edgeKey(world: World, event: EnvironmentEvent): string {
  return `${keyOf(world)} ${JSON.stringify(event)}`;
}

/** The answer without the names of leases, which depend on how long the story is. */
function answerOf(world: World): object {
  const step = world.steps.at(-1)!;
  const { state, ttlsLeft } = step.after;
  const { rule } = world;
  if (step.call === 'acquire') {
    const { expect: answer } = step;
    return { rule, state, ttlsLeft, answer: answer.answer, token: answer.answer === 'granted' && answer.token };
  }
  return { rule, state, ttlsLeft, accepted: 'expect' in step && step.expect.accepted };
}

function memorySubject(): Subject {
  let now = 1_000;
  const store = new MemoryStore({ now: () => now });
  const advance = async (seconds: number) => void (now += seconds);
  return new StoreSubject({ store, runId: 'run', ttlSeconds: 10, advance, timePasses: false });
}

/** Mulberry32: small, and the same everywhere. */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
