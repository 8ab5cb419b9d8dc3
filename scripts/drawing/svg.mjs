// A laid-out chart as SVG: cards for states, pills for transitions. Light on its own white ground, so that it reads the same
// on a dark page.
import { FONT, LAYOUT, wrap } from './layout.mjs';

const { LINE, PADDING, BADGE } = LAYOUT;
const MARGIN = 28;
const STYLE = `
text { font-family: Inter, 'Helvetica Neue', Helvetica, Arial, sans-serif; fill: #0f172a }
.code { font-family: ui-monospace, 'SF Mono', Menlo, 'DejaVu Sans Mono', Consolas, monospace; font-size: ${FONT.code}px; white-space: pre }
.title { font-size: 22px; font-weight: 700 }
.lead { font-size: 13px; fill: #475569 }
.name { font-size: ${FONT.name}px; font-weight: 700 }
.text { font-size: ${FONT.text}px; fill: #475569 }
.event { fill: #0f172a; font-weight: 600 } .guard { fill: #b45309 } .action { fill: #047857 } .muted { fill: #64748b } .rule { fill: #4338ca; font-weight: 700 }
.badge { fill: #4338ca } .badge-text { fill: #fff; font-size: 10.5px; font-weight: 700; text-anchor: middle }
.state { fill: #fff; stroke: #334155; stroke-width: 1.5 } .group { fill: #f8fafc; stroke: #94a3b8; stroke-width: 1.25 }
.head { fill: #eef2ff } .final { fill: none; stroke: #334155; stroke-width: 1 }
.line { fill: none; stroke: #475569; stroke-width: 1.4 } .arrow { fill: #475569 }
.pill { fill: #fff; stroke: #cbd5e1; stroke-width: 1 } .dot { fill: #0f172a }
`.trim();

export function svgOf({ title, lead, graph }) {
  const leadLines = wrap(lead, Math.max(40, Math.floor(graph.width / 7)));
  const top = MARGIN + 34 + leadLines.length * 18;
  const width = Math.max(graph.width, 520) + 2 * MARGIN;
  const height = graph.height + top + MARGIN;
  const shift = Math.round((width - graph.width) / 2);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${round(width)}" height="${round(height)}" viewBox="0 0 ${round(width)} ${round(height)}" role="img" aria-label="${escape(title)}">`,
    `<style>${STYLE}</style>`,
    `<rect width="100%" height="100%" rx="14" fill="#fff"/>`,
    `<text class="title" x="${MARGIN}" y="${MARGIN + 16}">${escape(title)}</text>`,
    ...leadLines.map(
      (line, index) => `<text class="lead" x="${MARGIN}" y="${MARGIN + 40 + index * 18}">${escape(line)}</text>`,
    ),
    `<g transform="translate(${shift} ${top})">`,
    ...graph.children.flatMap(boxes),
    ...graph.edges.map(line),
    ...graph.edges.flatMap(pills),
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

function boxes(node) {
  if (node.drawn.initial) return [`<circle class="dot" cx="${round(node.x + 6)}" cy="${round(node.y + 6)}" r="6"/>`];
  const { state, rows } = node.drawn;
  const group = state.states.length > 0;
  const { x, y, width, height } = node;
  return [
    `<rect class="${group ? 'group' : 'state'}" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="10"/>`,
    ...(group ? [] : [head(node)]),
    ...(state.final
      ? [
          `<rect class="final" x="${round(x + 3)}" y="${round(y + 3)}" width="${round(width - 6)}" height="${round(height - 6)}" rx="8"/>`,
        ]
      : []),
    `<text class="name" x="${round(x + PADDING)}" y="${round(y + 22)}">${escape(state.name)}</text>`,
    ...rowsOf(rows, x + PADDING, y + 40),
    ...(node.children ?? []).flatMap(boxes),
  ];
}

function head({ x, y, width, height, drawn }) {
  if (drawn.rows.length === 0) return '';
  const right = x + width - 0.75;
  const bottom = y + Math.min(34, height);
  return `<path class="head" d="M${round(x + 0.75)} ${round(bottom)}V${round(y + 10)}a9.25 9.25 0 0 1 9.25 -9.25H${round(right - 9.25)}a9.25 9.25 0 0 1 9.25 9.25V${round(bottom)}Z"/>`;
}

function rowsOf(rows, x, top) {
  let line = top;
  return rows.map((row) => {
    line += row.gap + LINE;
    return rowOf(row, x, line - 0.25 * LINE);
  });
}

function rowOf(row, x, baseline) {
  if (row.text !== undefined)
    return `<text class="text" x="${round(x)}" y="${round(baseline)}">${escape(row.text)}</text>`;
  const badge = row.rule ? badgeOf(row.rule, x, baseline) : '';
  return `<g>${titleOf(row.title)}${badge}${codeOf(row.parts, x + (row.rule ? BADGE : 0), baseline)}</g>`;
}

function badgeOf(rule, x, baseline) {
  return `<rect class="badge" x="${round(x)}" y="${round(baseline - 11)}" width="24" height="15" rx="7.5"/><text class="badge-text" x="${round(x + 12)}" y="${round(baseline + 0.4)}">${escape(rule)}</text>`;
}

function codeOf(parts, x, baseline) {
  const spans = parts.map(([kind, text]) => `<tspan class="${kind}">${escape(text)}</tspan>`).join('');
  return `<text class="code" xml:space="preserve" x="${round(x)}" y="${round(baseline)}">${spans}</text>`;
}

function pills({ labels = [], drawn }) {
  if (labels.length === 0) return [];
  const [{ x, y, width, height }] = labels;
  const { transition, lines } = drawn;
  const left = x + 7 + (transition.rule ? BADGE : 0);
  return [
    `<g>${titleOf(transition.description)}<rect class="pill" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="8"/>` +
      (transition.rule ? badgeOf(transition.rule, x + 7, y + LINE - 0.5) : '') +
      lines.map((parts, index) => codeOf(parts, left, y + 4 + (index + 0.75) * LINE)).join('') +
      '</g>',
  ];
}

/** The edge's way with rounded corners, and its arrow. */
function line({ sections }) {
  return sections
    .map(({ startPoint, bendPoints = [], endPoint }) => {
      const points = [startPoint, ...bendPoints, endPoint];
      return `<path class="line" d="${roundedPath(points)}"/>${arrow(points.at(-2), endPoint)}`;
    })
    .join('');
}

function roundedPath(points) {
  const corners = points.slice(1, -1).map((corner, index) => {
    const before = points[index];
    const after = points[index + 2];
    const radius = Math.min(9, distance(before, corner) / 2, distance(corner, after) / 2);
    const from = towards(corner, before, radius);
    const to = towards(corner, after, radius);
    return `L${round(from.x)} ${round(from.y)}Q${round(corner.x)} ${round(corner.y)} ${round(to.x)} ${round(to.y)}`;
  });
  const [start] = points;
  const end = points.at(-1);
  return `M${round(start.x)} ${round(start.y)}${corners.join('')}L${round(end.x)} ${round(end.y)}`;
}

function arrow(before, tip) {
  const back = towards(tip, before, 8);
  const [dx, dy] = [(tip.y - back.y) / 2, (back.x - tip.x) / 2];
  return `<path class="arrow" d="M${round(tip.x)} ${round(tip.y)}L${round(back.x + dx)} ${round(back.y + dy)}L${round(back.x - dx)} ${round(back.y - dy)}Z"/>`;
}

function towards(from, to, length) {
  const whole = distance(from, to) || 1;
  return { x: from.x + ((to.x - from.x) * length) / whole, y: from.y + ((to.y - from.y) * length) / whole };
}

function distance(a, b) {
  return Math.hypot(a.x - b.x, a.y - b.y);
}

function titleOf(description) {
  return description ? `<title>${escape(description)}</title>` : '';
}

function round(value) {
  return Math.round(value * 10) / 10;
}

function escape(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
