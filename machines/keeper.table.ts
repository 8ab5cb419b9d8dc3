/**
 * The keeper machine's own config, compiled. A `StateMachine` actor with its actors and timers costs a hold some hundred
 * microseconds and each lease some 20 kilobytes; a manager runs this table instead, at a fraction of both. A test walks
 * both side by side.
 */
import { keeperMachine } from './keeper.machine.ts';
import type { KeeperStep } from './keeper.rules.ts';
import { keeperGuards, keeperNews, keeperUpdates } from './keeper.rules.ts';
import type { KeeperContext, KeeperNews } from './keeper.types.ts';

export type KeeperActor = 'ask' | 'wakeUp' | 'renew' | 'release' | 'withdraw';
export type KeeperDelay = 'poll' | 'deadline' | 'renewal' | 'retry';

/** An action of the chart: it changes the context, or tells something. */
export type KeeperAction = (typeof keeperUpdates)[keyof typeof keeperUpdates] | KeeperNews['type'];

/** One transition, ready to run. */
export interface KeeperRow {
  readonly guard: ((context: KeeperContext, step: KeeperStep) => boolean) | undefined;
  readonly actions: readonly KeeperAction[];
  /** Of the active states, the outermost first, so many stay. The others are left. */
  readonly keeps: number;
  /** What is entered then, the outermost first. Nothing: only the actions run, and every state stays. */
  readonly enters: readonly KeeperNode[];
}

/** One state of the chart. */
export interface KeeperNode {
  readonly path: readonly string[];
  readonly parent: KeeperNode | null;
  readonly isFinal: boolean;
  readonly entry: readonly KeeperAction[];
  readonly invoke: { readonly src: KeeperActor; readonly onDone: readonly KeeperRow[] } | null;
  readonly after: readonly { readonly delay: KeeperDelay; readonly rows: readonly KeeperRow[] }[];
  readonly on: Readonly<Record<string, readonly KeeperRow[]>>;
}

interface TransitionConfig {
  readonly target?: string;
  readonly guard?: keyof typeof keeperGuards;
  readonly actions?: string | readonly string[];
}

type Transitions = TransitionConfig | readonly TransitionConfig[];

interface StateConfig {
  readonly type?: 'final';
  readonly initial?: string;
  readonly entry?: string | readonly string[];
  readonly invoke?: { readonly src: KeeperActor; readonly onDone: Transitions };
  readonly after?: Record<string, Transitions>;
  readonly on?: Record<string, Transitions>;
  readonly states?: Record<string, StateConfig>;
}

/** A state while the table is made: its rows come once every state is there. */
type Draft = { -readonly [Key in keyof KeeperNode]: KeeperNode[Key] } & { readonly config: StateConfig };

const NO_MOVE = { keeps: Infinity, enters: [] };
const root = keeperMachine.config as unknown as StateConfig & { readonly id: string };
const nodes = new Map<string, Draft>();
draftStates(root, null);
for (const node of nodes.values()) complete(node);

/** What a keeper enters at its start, the outermost first. */
export const keeperStart: readonly KeeperNode[] = entered(nodes.get(root.initial!)!, null);

function draftStates({ states = {} }: StateConfig, parent: Draft | null): void {
  for (const [name, config] of Object.entries(states)) {
    const path = [...(parent?.path ?? []), name];
    const isFinal = config.type === 'final';
    const node: Draft = { config, path, parent, isFinal, entry: [], invoke: null, after: [], on: {} };
    nodes.set(path.join('.'), node);
    draftStates(config, node);
  }
}

function complete(node: Draft): void {
  const { entry, invoke, after = {}, on = {} } = node.config;
  node.entry = actionsOf(entry);
  if (invoke) node.invoke = { src: invoke.src, onDone: rowsOf(node, invoke.onDone) };
  node.after = Object.entries(after).map(([delay, rows]) => ({
    delay: delay as KeeperDelay,
    rows: rowsOf(node, rows),
  }));
  node.on = Object.fromEntries(Object.entries(on).map(([type, rows]) => [type, rowsOf(node, rows)]));
}

function rowsOf(source: Draft, transitions: Transitions): KeeperRow[] {
  return [transitions].flat().map(({ target, guard, actions }) => {
    const check = guard && keeperGuards[guard];
    if (guard && !check) throw new Error(`The keeper machine names a guard that the table does not have: ${guard}`);
    const targetNode = target === undefined ? null : targetOf(source, target);
    return { guard: check, actions: actionsOf(actions), ...(targetNode ? moves(source, targetNode) : NO_MOVE) };
  });
}

/** An absolute target starts with the machine's id, any other one is a sibling. */
function targetOf({ parent }: Draft, target: string): Draft {
  const absolute = target.startsWith(`#${root.id}.`);
  const path = absolute ? target.slice(root.id.length + 2) : [...(parent?.path ?? []), target].join('.');
  const node = nodes.get(path);
  if (node === undefined) throw new Error(`The keeper machine has no state ${target}`);
  return node;
}

/** Everything below the innermost state that properly holds both is left, and the way to the target entered anew. */
function moves(source: Draft, target: Draft): Pick<KeeperRow, 'keeps' | 'enters'> {
  let common = source.parent;
  while (common !== null && !isWithin(target, common)) common = common.parent;
  return { keeps: common?.path.length ?? 0, enters: entered(target, common) };
}

function isWithin(node: KeeperNode, ancestor: KeeperNode): boolean {
  for (let at = node.parent; at !== null; at = at.parent) if (at === ancestor) return true;
  return false;
}

/** From below the common state down to the target, and on to the initial states inside it. */
function entered(target: Draft, common: KeeperNode | null): Draft[] {
  const chain: Draft[] = [];
  for (let at: KeeperNode | null = target; at !== null && at !== common; at = at.parent) chain.unshift(at as Draft);
  for (let at = target; at.config.initial !== undefined;) {
    at = nodes.get([...at.path, at.config.initial].join('.'))!;
    chain.push(at);
  }
  return chain;
}

function actionsOf(names: string | readonly string[] = []): KeeperAction[] {
  return [names].flat().map((name) => {
    const action = keeperUpdates[name as keyof typeof keeperUpdates] ?? keeperNews[name as keyof typeof keeperNews];
    if (action === undefined)
      throw new Error(`The keeper machine names an action that the table does not have: ${name}`);
    return action;
  });
}
