// Which drawings there are, and what stands in each file.
import { leaseMachine } from '../../dist/machines/lease.machine.js';
import { keeperMachine } from '../../dist/machines/keeper.machine.js';
import { chartOf } from './chart.mjs';
import { layOut } from './layout.mjs';
import { mermaidOf, tableOf } from './mermaid.mjs';
import { registryChart } from './registry.mjs';
import { svgOf } from './svg.mjs';

const START = '<!-- lease machine: drawn by `npm run draw` -->';
const END = '<!-- end of the drawing -->';

/** The files as `[path, text]`. `read` gives what stands in a file now, or an empty text. */
export async function drawings(read) {
  const charts = { lease: chartOf(leaseMachine), keeper: chartOf(keeperMachine), registry: registryChart() };
  const files = [['machines/README.md', readmeOf(charts)]];
  for (const [name, chart] of Object.entries(charts)) {
    files.push([`machines/${name}.svg`, svgOf({ title: name, lead: chart.description, graph: await layOut(chart) })]);
  }
  const readme = read('README.md');
  if (readme.includes(START)) files.push(['README.md', withBlock(readme, leaseBlock(charts.lease))]);
  return files;
}

function readmeOf({ lease, keeper, registry }) {
  return `# The statecharts

Drawn from the machines by \`npm run draw\`; a test fails when a drawing is stale. Guards, actions and actors have the names
that they have in the code. What a chart does not name changes nothing.

## lease

${lease.description} The rules are plain functions in [lease.rules.ts](lease.rules.ts), the chart is
[lease.machine.ts](lease.machine.ts).

![The lease machine](lease.svg)

${tableOf(lease)}

${statesOf(lease)}

${mermaidBlock(lease)}

## registry

${registry.description} An actor of its own logic, [registry.logic.ts](registry.logic.ts). The drawing is a recorded
inspection: the calls with the time that each brought and what it was answered, the lease actors with the events that
reached them, and where each run ended. A call that nothing can come of reaches no lease actor.

![The registry and its lease actors](registry.svg)

## keeper

${keeper.description} The chart is [keeper.machine.ts](keeper.machine.ts).

![The keeper machine](keeper.svg)

${tableOf(keeper)}

${mermaidBlock(keeper)}
`;
}

function statesOf({ states }) {
  return states.map(({ name, description }) => `- **${name}**: ${description}`).join('\n');
}

function leaseBlock(lease) {
  const picture = `![The chart of one run: ${lease.states.map(({ name }) => name).join(', ')}](machines/lease.svg)`;
  return `${picture}\n\n<details>\n<summary>The same as Mermaid text</summary>\n\n${mermaidBlock(lease)}\n\n</details>`;
}

function mermaidBlock(chart) {
  return `\`\`\`mermaid\n${mermaidOf(chart)}\n\`\`\``;
}

function withBlock(text, block) {
  const from = text.indexOf(START) + START.length;
  const to = text.indexOf(END, from);
  if (to === -1) throw new Error(`README.md has no line ${END}`);
  return `${text.slice(0, from)}\n\n${block}\n\n${text.slice(to)}`;
}
