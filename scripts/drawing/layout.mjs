// Where each state, label and line of a chart goes. ELK decides, from sizes that are reckoned from the text.
import Elk from 'elkjs';
import { allStates } from './chart.mjs';

export const FONT = { name: 15, text: 12, code: 12 };
/** Widths per character, as parts of the font's size: monospaced ones are known, the others on the safe side. */
const CODE_WIDTH = 0.605;
const TEXT_WIDTH = 0.54;
const LINE = 17;
const TEXT_COLUMNS = 38;
const WIDE_COLUMNS = 64;
const GAP = 6;
const BADGE = 30;
const PADDING = 14;

const OPTIONS = {
  'elk.algorithm': 'layered',
  'elk.direction': 'DOWN',
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.json.shapeCoords': 'ROOT',
  'elk.json.edgeCoords': 'ROOT',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.layered.cycleBreaking.strategy': 'MODEL_ORDER',
  'elk.spacing.nodeNode': '36',
  'elk.spacing.nodeSelfLoop': '26',
  'elk.spacing.edgeNode': '22',
  'elk.spacing.edgeEdge': '16',
  'elk.spacing.edgeLabel': '6',
  'elk.spacing.labelLabel': '10',
  'elk.layered.spacing.nodeNodeBetweenLayers': '30',
  'elk.layered.spacing.edgeNodeBetweenLayers': '18',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '14',
  'elk.layered.considerModelOrder.strategy': 'NODES_AND_EDGES',
  'elk.layered.nodePlacement.strategy': 'BRANDES_KOEPF',
  'elk.layered.nodePlacement.bk.fixedAlignment': 'BALANCED',
  'elk.randomSeed': '1',
};

/** A label sits on its line. */
const INLINE = { 'elk.edgeLabels.inline': 'true' };

/** The chart as ELK lays it out: nodes, edges and labels in pixels from the top left, each with what is `drawn` there. */
export function layOut(chart) {
  const states = new Map(allStates(chart.states).map((state) => [state.id, state]));
  const external = chart.transitions.filter(({ target }) => target !== undefined);
  return new Elk().layout({
    id: 'chart',
    layoutOptions: OPTIONS,
    children: [...initialNodes('', chart.initial), ...chart.states.map((state) => nodeOf(state, chart))],
    edges: [...external.map((transition, index) => edgeOf(transition, index, states)), ...initialEdges(chart)],
  });
}

function nodeOf(state, chart) {
  const rows = rowsOf(state, chart);
  const { width, height } = sizeOf(state, rows);
  const node = { id: state.id, width, height, drawn: { state, rows } };
  if (state.states.length === 0) return node;
  return {
    ...node,
    children: [...initialNodes(state.id, state.initial), ...state.states.map((child) => nodeOf(child, chart))],
    layoutOptions: {
      'elk.padding': `[top=${height + 18},left=26,bottom=26,right=26]`,
      'elk.nodeSize.constraints': 'MINIMUM_SIZE',
      'elk.nodeSize.minimum': `(${width}, ${height})`,
    },
  };
}

/** What stands in a state's box below its name. */
function rowsOf(state, { transitions }) {
  const internal = transitions.filter(({ source, target }) => source === state.id && target === undefined);
  const text = wrap(state.description ?? '', state.states.length > 0 ? WIDE_COLUMNS : TEXT_COLUMNS);
  const code = [
    ...state.entry.map((name) => ({
      parts: [
        ['muted', 'entry '],
        ['action', `/ ${name}`],
      ],
    })),
    ...state.exit.map((name) => ({
      parts: [
        ['muted', 'exit '],
        ['action', `/ ${name}`],
      ],
    })),
    ...state.invokes.map((name) => ({
      parts: [
        ['muted', 'invoke '],
        ['event', name],
      ],
    })),
    ...internal.map((transition) => ({
      rule: transition.rule,
      parts: oneLine(transition),
      title: transition.description,
    })),
    ...(state.facts ?? []).map((parts) => ({ parts })),
  ];
  const rows = [...text.map((line) => ({ text: line, gap: 0 })), ...code.map((row) => ({ ...row, gap: 0 }))];
  if (text.length > 0 && code.length > 0) rows[text.length].gap = GAP;
  return rows;
}

function sizeOf(state, rows) {
  const widths = rows.map((row) =>
    row.text === undefined
      ? lengthOf(row.parts) * FONT.code * CODE_WIDTH + (row.rule ? BADGE : 0)
      : row.text.length * FONT.text * TEXT_WIDTH,
  );
  const gaps = rows.reduce((sum, { gap }) => sum + gap, 0);
  return {
    width: Math.ceil(Math.max(state.name.length * FONT.name * 0.66, ...widths, 60) + 2 * PADDING),
    height: 34 + rows.length * LINE + gaps + (rows.length > 0 ? 12 : 0),
  };
}

function edgeOf(transition, index, states) {
  const lines = transition.lines ?? partsOf(transition);
  const width = Math.max(...lines.map(lengthOf)) * FONT.code * CODE_WIDTH + (transition.rule ? BADGE : 0) + 14;
  const inside = transition.source.startsWith(`${transition.target}.`);
  return {
    id: `transition-${index}`,
    sources: [transition.source],
    // Back to a state that it is inside of: that state is entered anew, by its initial one.
    targets: [inside ? states.get(transition.target).initial : transition.target],
    labels: [
      {
        id: `label-${index}`,
        text: lines[0][0][1],
        width: Math.ceil(width),
        height: lines.length * LINE + 8,
        layoutOptions: INLINE,
      },
    ],
    drawn: { transition, lines },
  };
}

/** A transition's label in coloured parts, one list per line: the event and its guard, then what it does. */
function partsOf({ event, guard, actions }) {
  const first = [['event', event], ...(guard ? [['guard', ` [${guard}]`]] : [])];
  if (actions.length === 0) return [first];
  const action = [['action', `/ ${actions.join(', ')}`]];
  return [first, action];
}

function oneLine(transition) {
  const [first, action = []] = partsOf(transition);
  return [...first, ...action.map(([kind, text]) => [kind, ` ${text}`])];
}

function initialNodes(parent, initial) {
  return initial === undefined ? [] : [{ id: `${parent}/initial`, width: 12, height: 12, drawn: { initial: true } }];
}

function initialEdges({ initial, states }) {
  const parents = [{ id: '', initial }, ...allStates(states)].filter((state) => state.initial !== undefined);
  return parents.map((parent) => ({
    id: `${parent.id}/start`,
    sources: [`${parent.id}/initial`],
    targets: [parent.initial],
    drawn: { initial: true },
  }));
}

function lengthOf(parts) {
  return parts.reduce((sum, [, text]) => sum + text.length, 0);
}

export function wrap(text, columns) {
  const lines = [];
  for (const word of text.split(' ').filter(Boolean)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= columns) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

export const LAYOUT = { LINE, PADDING, BADGE };
