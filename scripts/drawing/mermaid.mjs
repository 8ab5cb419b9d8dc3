// A chart as Mermaid text, which GitHub draws, and as the table of its rules.
import { allStates, labelOf } from './chart.mjs';

export function mermaidOf({ initial, states, transitions }) {
  const line = ({ source, target, rule, ...transition }) =>
    `${idOf(source)} --> ${idOf(target ?? source)}: ${[rule, labelOf(transition)].filter(Boolean).join(' ')}`;
  return [
    'stateDiagram-v2',
    `  [*] --> ${idOf(initial)}`,
    ...states.flatMap((state) => blockOf(state).map((text) => `  ${text}`)),
    ...transitions.map((transition) => `  ${line(transition)}`),
    ...allStates(states)
      .filter(({ final }) => final)
      .map(({ id }) => `  ${idOf(id)} --> [*]`),
  ].join('\n');
}

function blockOf({ id, name, initial, states }) {
  if (states.length === 0) return [`state "${name}" as ${idOf(id)}`];
  return [
    `state "${name}" as ${idOf(id)} {`,
    `  [*] --> ${idOf(initial)}`,
    ...states.flatMap((state) => blockOf(state).map((text) => `  ${text}`)),
    '}',
  ];
}

function idOf(path) {
  return path.replaceAll('.', '_');
}

/** One row per transition, in the order of the chart. */
export function tableOf({ transitions }) {
  const ruled = transitions.some(({ rule }) => rule);
  const heads = [...(ruled ? ['rule'] : []), 'state', 'event', 'guard', 'next', 'effect', 'what it means'];
  const rows = transitions.map(({ rule, source, event, guard, target, actions, description }) => [
    ...(ruled ? [rule ?? ''] : []),
    source,
    event,
    guard ?? '',
    target ?? 'the same',
    actions.join(', '),
    description ?? '',
  ]);
  return [heads, heads.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
