// Turns the library round, one deliberate error at a time, and runs the tests that name the property: each error must be
// found. It works on a copy of the working tree and changes nothing here. No part of `npm test`, as it takes minutes.
import { parseArgs } from 'node:util';
import { mutants } from './mutants.mjs';
import { check } from './mutant.mjs';
import { WorkingCopy } from './working-copy.mjs';

const HELP = `node scripts/mutation/mutate.mjs [--only TEXT] [--list | --check]

Applies each mutant of the table to a copy of the working tree, and runs the tests that must kill it.

  --only TEXT  those whose name or property contains it
  --list       prints them, and runs nothing
  --check      looks whether each still has its place in the sources, and runs nothing
  --help       this

Prints one line for each: killed, survived or broken build. Fails when one was not killed.`;

const values = readOptions();
const chosen = mutants.filter(({ name, property }) => `${property} ${name}`.includes(values.only));

if (values.help) console.log(HELP);
else if (values.list) for (const { property, name, file } of chosen) console.log(`${property}  ${name} (${file})`);
else if (values.check) checkAll();
else await run();

function readOptions() {
  try {
    const options = {
      only: { type: 'string', default: '' },
      list: { type: 'boolean' },
      check: { type: 'boolean' },
      help: { type: 'boolean' },
    };
    return parseArgs({ options }).values;
  } catch (error) {
    console.error(`${error.message}\n${HELP.split('\n', 1)[0]}`);
    return process.exit(64);
  }
}

/** A table that has gone stale is noticed at once. */
function checkAll() {
  for (const mutant of chosen) check(mutant);
  console.log(`${chosen.length} mutants have their place`);
}

async function run() {
  checkAll();
  const copy = new WorkingCopy();
  process.once('exit', () => copy.remove());
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
  let killed = 0;
  for (const mutant of chosen) {
    const { verdict, seconds } = await copy.judge(mutant);
    if (verdict.startsWith('killed')) killed += 1;
    console.log(`${verdict}  ${mutant.property}  ${mutant.name} (${seconds.toFixed(1)} s)`);
  }
  console.log(`killed ${killed} of ${chosen.length}`);
  process.exitCode = killed === chosen.length && killed > 0 ? 0 : 1;
}
