// `npm test`: everything that must hold, in one command. The quick checks run side by side, then the tests. The first
// failure fails the whole. Arguments go to vitest: `npm test -- test/registry`.
//
// Where LESSOR_RESULTS names a folder, everything runs in spite of failures, and the tests' JSON report and the number of
// checks are written there (.ci/run adds them up).
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const results = process.env.LESSOR_RESULTS;

const build = { name: 'build', command: scripts.build };
const checks = ['types', 'lint', 'format:check', 'unused', 'package', 'package:types'].map((name) => ({
  name,
  command: scripts[name],
}));
const tests = { name: 'tests', command: `vitest run ${reporters()} ${process.argv.slice(2).map(quote).join(' ')}` };

const env = {
  ...process.env,
  PATH: `${join(root, 'node_modules/.bin')}${delimiter}${process.env.PATH}`,
  // The tests find the build of a moment ago and need none of their own.
  LESSOR_BUILT: '1',
};
if (!process.stdout.isTTY) env.NO_COLOR ??= '1';
const counts = { passed: 0, failed: 0 };

try {
  let good = await runStep(build);
  if (good || results) good = (await inPairs(checks)) && good;
  if (good || results) good = (await runStep(tests, { show: true })) && good;
  console.log(good ? '\nAll checks passed.' : '\nFAILED: see above.');
  process.exitCode = good ? 0 : 1;
} finally {
  if (results) writeFileSync(join(results, 'checks.json'), JSON.stringify(counts));
}

/** Runs the steps two at a time. Once one has failed no more are started, unless all are to be counted. */
async function inPairs(steps) {
  const waiting = [...steps];
  let good = true;
  const lane = async () => {
    for (let step = waiting.shift(); step !== undefined; step = waiting.shift()) {
      if (good || results) good = (await runStep(step)) && good;
    }
  };
  await Promise.all([lane(), lane()]);
  return good;
}

/** Whether the step succeeded. What it printed is kept back until it failed, unless it is to be watched. */
async function runStep({ name, command }, { show = false } = {}) {
  const start = performance.now();
  const out = show ? 'inherit' : 'pipe';
  if (show) console.log(`\n${name}`);
  const child = spawn(command, { cwd: root, env, shell: true, stdio: ['ignore', out, out] });
  const said = [];
  child.stdout?.on('data', (chunk) => said.push(chunk));
  child.stderr?.on('data', (chunk) => said.push(chunk));
  const code = await new Promise((resolve) => {
    child.once('error', () => resolve(127));
    child.once('close', (exitCode, signal) => resolve(exitCode ?? signal));
  });
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`${code === 0 ? 'ok' : 'FAILED'}  ${name} (${seconds} s)`);
  if (code !== 0) process.stdout.write(`\n$ ${command}\n${Buffer.concat(said).toString()}\n`);
  // The tests are counted one by one, in their own report.
  if (!show) counts[code === 0 ? 'passed' : 'failed'] += 1;
  return code === 0;
}

function reporters() {
  if (!results) return '';
  mkdirSync(results, { recursive: true });
  return `--reporter=default --reporter=./test/store-reporter.ts --reporter=json --outputFile.json=${quote(join(results, 'tests.json'))}`;
}

function quote(word) {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
