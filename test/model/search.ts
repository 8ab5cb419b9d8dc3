/** Exhaustive search of a model, breadth first: every state that its steps can reach, and the shortest way to a violation. */

/** A state, or what is wrong, as a sentence. */
export type Outcome<State> = State | { readonly violation: string };

/**
 * States are plain data. A step is enabled when it gives a state; a violation is told as a sentence. Where `encode` and
 * `decode` are left out, a state is remembered as its JSON: equal states must then be written down alike.
 */
export interface Model<State> {
  readonly initial: State;
  steps(state: State): Iterable<readonly [name: string, next: Outcome<State>]>;
  encode?(state: State): string;
  decode?(key: string): State;
}

/** From which state a state was found first, and by which step. */
export interface Came {
  readonly from: string;
  readonly name: string;
}

export interface Searched {
  readonly states: number;
  readonly edges: number;
  /** Of the deepest state, in steps. */
  readonly depth: number;
  /** The shortest way to the first violation found, with what was violated at its end. */
  readonly violation: { readonly what: string; readonly trace: readonly string[] } | null;
  /** Every state as it was remembered, with where it came from: the shortest path to each. */
  readonly tree: ReadonlyMap<string, Came | null>;
}

export function search<State extends object>(model: Model<State>, limit = 5_000_000): Searched {
  const { encode = JSON.stringify as (state: State) => string, decode = JSON.parse as (key: string) => State } = model;
  const initial = encode(model.initial);
  const tree = new Map<string, Came | null>([[initial, null]]);
  let frontier = [initial];
  let edges = 0;
  let depth = 0;
  while (frontier.length > 0) {
    const next: string[] = [];
    for (const key of frontier) {
      for (const [name, state] of model.steps(decode(key))) {
        edges += 1;
        if ('violation' in state) {
          const trace = [...traceTo(tree, key), name];
          return { states: tree.size, edges, depth, violation: { what: state.violation, trace }, tree };
        }
        const target = encode(state);
        if (tree.has(target)) continue;
        tree.set(target, { from: key, name });
        next.push(target);
      }
    }
    if (tree.size > limit) throw new Error(`More than ${limit} states`);
    if (next.length > 0) depth += 1;
    frontier = next;
  }
  return { states: tree.size, edges, depth, violation: null, tree };
}

/** The names of the steps that lead to the state. */
export function traceTo(tree: Searched['tree'], key: string): string[] {
  const trace: string[] = [];
  for (let came = tree.get(key); came; came = tree.get(came.from)) trace.push(came.name);
  return trace.reverse();
}
