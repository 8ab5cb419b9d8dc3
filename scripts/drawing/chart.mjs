// A statechart as plain data, read from a machine of xstate: what every drawing is made from.

/**
 * The machine's states and transitions. A state's id is its path from the root (`holding.renewing`); a transition without
 * a target is internal to its source.
 */
export function chartOf(machine) {
  const transitions = [];
  const states = Object.values(machine.root.states).map((node) => stateOf(node, transitions));
  return {
    id: machine.id,
    description: machine.root.description,
    initial: machine.root.initial.target[0].key,
    states,
    transitions,
  };
}

function stateOf(node, transitions) {
  const id = node.path.join('.');
  for (const [event, candidates] of node.transitions) {
    for (const candidate of candidates) transitions.push(transitionOf(id, event, candidate));
  }
  for (const candidate of node.always ?? []) transitions.push(transitionOf(id, 'always', candidate));
  return {
    id,
    name: node.key,
    description: node.description,
    final: node.type === 'final',
    initial: node.type === 'compound' ? node.initial.target[0].path.join('.') : undefined,
    entry: node.entry.map(nameOf).filter(isOwn),
    exit: node.exit.map(nameOf).filter(isOwn),
    invokes: node.invoke.map(({ src }) => nameOf(src)),
    states: Object.values(node.states).map((child) => stateOf(child, transitions)),
  };
}

function transitionOf(source, event, { target, guard, actions, meta, description }) {
  return {
    source,
    target: target?.[0]?.path.join('.'),
    event: eventName(event),
    guard: guard && nameOf(guard),
    actions: actions.map(nameOf),
    rule: meta?.rule,
    description,
  };
}

/** `xstate.done.actor.renew` as `done renew`, `xstate.after.deadline.keeper.holding` as `after deadline`. */
function eventName(type) {
  const [, kind, name] =
    /^xstate\.(done|error)\.actor\.(.+)$/.exec(type) ?? /^xstate\.(after)\.([^.]+)/.exec(type) ?? [];
  return kind === undefined ? type : `${kind} ${name}`;
}

function nameOf(named) {
  const name = typeof named === 'string' ? named : named.type;
  if (typeof name !== 'string') throw new Error('Guards, actions and actors of a drawn machine have names');
  return name;
}

/** A delayed transition is an action of xstate's own on entry and on exit. */
function isOwn(action) {
  return !action.startsWith('xstate.');
}

/** `acquire [isExpired] / grant`, as UML writes a transition. */
export function labelOf({ event, guard, actions }) {
  return [event, guard && `[${guard}]`, actions.length > 0 && `/ ${actions.join(', ')}`].filter(Boolean).join(' ');
}

/** The states with all below them, parents first. */
export function allStates(states) {
  return states.flatMap((state) => [state, ...allStates(state.states)]);
}
