/** What Stately's reader finds in the machine files is all that is there: states, events, guards, actions, actors, delays. */
import { readdirSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { keeperMachine } from '../../machines/keeper.machine.ts';
import { leaseMachine } from '../../machines/lease.machine.ts';
import { EXTRACTOR_VERSION, loadExtractor, sourceOf, type Extract } from './extractor/extract.ts';

const MACHINES: Readonly<Record<string, { readonly config: object }>> = {
  'lease.machine.ts': leaseMachine,
  'keeper.machine.ts': keeperMachine,
};

let extract: Extract;

beforeAll(async () => {
  extract = await loadExtractor();
  console.log(`read by @xstate/machine-extractor ${EXTRACTOR_VERSION}`);
});

describe("Stately's import", () => {
  it('has a check for every machine file', () => {
    const files = readdirSync(new URL('../../machines', import.meta.url)).filter((name) =>
      name.endsWith('.machine.ts'),
    );
    expect(Object.keys(MACHINES).toSorted()).toEqual(files.toSorted());
  });

  it.each(Object.entries(MACHINES))('finds one machine in %s, and loses nothing of it', (file, machine) => {
    const { machines } = extract(sourceOf(file))!;
    expect(machines).toHaveLength(1);
    const found = linesOf(machines[0]!.toConfig() as StateNode);
    expect(found).toEqual(linesOf(machine.config as StateNode));
    expect(found.length).toBeGreaterThan(12);
  });

  it('finds no machine in the registry, which is an actor of its own logic', () => {
    expect(extract(sourceOf('registry.logic.ts'))).toBeNull();
  });

  it('would notice a loss: a transition that a helper builds is not read', () => {
    const source = sourceOf('lease.machine.ts').replace("guard: 'mayExtend'", "guard: mayExtendAnd('isCurrent')");
    const found = linesOf(extract(source)!.machines[0]!.toConfig() as StateNode);
    expect(found).not.toEqual(linesOf(leaseMachine.config as StateNode));
  });
});

/** A transition, an invoked actor or a state, in the form of xstate 5 or in that of the extractor. */
interface Transition {
  readonly target?: string;
  readonly guard?: string;
  readonly cond?: { readonly type: string };
  readonly actions?: Named | readonly Named[];
  readonly description?: string;
}

type Named = string | { readonly action: { readonly type: string } };
type Transitions = Transition | readonly Transition[];

interface Invoked {
  readonly id: string;
  readonly src: string;
  readonly onDone?: Transitions;
}

interface StateNode {
  readonly id?: string;
  readonly type?: string;
  readonly initial?: string;
  readonly description?: string;
  readonly entry?: Named | readonly Named[];
  readonly on?: Readonly<Record<string, Transitions>>;
  readonly after?: Readonly<Record<string, Transitions>>;
  readonly invoke?: Invoked | readonly Invoked[];
  readonly states?: Readonly<Record<string, StateNode>>;
}

/** A chart as lines, one for each state, invoked actor and transition. */
function linesOf(node: StateNode, path = node.id ?? ''): string[] {
  const { type = '', initial = '', description = '', entry } = node;
  return [
    `${path} ${type} initial ${initial} entry ${namesOf(entry)} "${description}"`,
    ...Object.entries(node.on ?? {}).flatMap(([event, to]) => transitionLines(path, event, to)),
    ...Object.entries(node.after ?? {}).flatMap(([delay, to]) => transitionLines(path, `after ${delay}`, to)),
    ...many(node.invoke).flatMap(({ id, src, onDone }) => [
      `${path} invokes ${src} as ${id}`,
      ...transitionLines(path, `${id} done`, onDone ?? []),
    ]),
    ...Object.entries(node.states ?? {}).flatMap(([key, child]) => linesOf(child, `${path}.${key}`)),
  ];
}

function transitionLines(path: string, event: string, transitions: Transitions): string[] {
  return many(transitions).map(({ target = '', guard, cond, actions, description = '' }) =>
    [
      `${path} ${event}`,
      `[${guard ?? cond?.type ?? ''}]`,
      `-> ${target}`,
      `/ ${namesOf(actions)}`,
      `"${description}"`,
    ].join(' '),
  );
}

function namesOf(actions: Named | readonly Named[] | undefined): string {
  return many(actions)
    .map((action) => (typeof action === 'string' ? action : action.action.type))
    .join(', ');
}

function many<Value>(value: Value | readonly Value[] | undefined): readonly Value[] {
  return value === undefined ? [] : ([value].flat() as readonly Value[]);
}
