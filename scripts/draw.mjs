// Draws the statecharts from the machines themselves: machines/*.svg, machines/README.md, and the block in README.md that
// is marked for it. `node scripts/draw.mjs --check` writes nothing and fails when a drawing is stale.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { drawings } from './drawing/drawings.mjs';

const check = process.argv.includes('--check');
const stale = [];
for (const [path, text] of await drawings(read)) {
  if (read(path) === text) continue;
  stale.push(path);
  if (!check) writeFileSync(fileOf(path), text);
}
console.log(stale.length === 0 ? 'Every drawing is up to date.' : `${check ? 'Stale' : 'Drawn'}: ${stale.join(', ')}`);
process.exitCode = check && stale.length > 0 ? 1 : 0;

function read(path) {
  return existsSync(fileOf(path)) ? readFileSync(fileOf(path), 'utf8') : '';
}

function fileOf(path) {
  return fileURLToPath(new URL(`../${path}`, import.meta.url));
}
