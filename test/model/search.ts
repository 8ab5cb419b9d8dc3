/** Exhaustive search of a model, breadth first: every state that its steps can reach, and the shortest way to a violation. */

/** States are plain JSON. A step is enabled when it gives a state; a violation is told as a sentence. */
export interface Model<State> {
  readonly initial: State;
  steps(state: State): Iterable<readonly [name: string, next: State | { readonly violation: string }]>;
}

export interface Searched {
  readonly states: number;
  readonly edges: number;
  /** Of the deepest state, in steps. */
  readonly depth: number;
  /** The shortest way to the first violation found, with what was violated at its end. */
  readonly violation: { readonly what: string; readonly trace: readonly string[] } | null;
}

export function search<State extends object>(model: Model<State>, limit = 5_000_000): Searched {
  const seen = new Map<string, Came | null>([[JSON.stringify(model.initial), null]]);
  let frontier = [JSON.stringify(model.initial)];
  let edges = 0;
  let depth = 0;
  while (frontier.length > 0) {
    const next: string[] = [];
    for (const key of frontier) {
      for (const [name, state] of model.steps(JSON.parse(key) as State)) {
        edges += 1;
        if ('violation' in state) {
          const trace = [...traceTo(seen, key), name];
          return { states: seen.size, edges, depth, violation: { what: state.violation, trace } };
        }
        const target = JSON.stringify(state);
        if (seen.has(target)) continue;
        seen.set(target, { from: key, name });
        next.push(target);
      }
    }
    if (seen.size > limit) throw new Error(`More than ${limit} states`);
    if (next.length > 0) depth += 1;
    frontier = next;
  }
  return { states: seen.size, edges, depth, violation: null };
}

interface Came {
  readonly from: string;
  readonly name: string;
}

function traceTo(seen: ReadonlyMap<string, Came | null>, key: string): string[] {
  const came = seen.get(key);
  return came ? [...traceTo(seen, came.from), came.name] : [];
}
