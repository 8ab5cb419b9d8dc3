/** What the benches over stores share: their command line, and an end in order, also by Ctrl-C. */
import { parseArgs } from 'node:util';

/** Ends of what was started, the newest first. */
const ends = [];
let isInterrupted = false;

/**
 * The names of the stores to measure, all where none was given, and the options. Prints the usage for `--help`, and for what
 * it does not know, which ends the process with 64.
 *
 * @param usage - what can be written after `usage: `; its first line is enough for a mistake.
 * @param isValid - whether the options' values make sense.
 */
export function readCommand({ usage, stores, options, isValid }) {
  try {
    const help = { type: 'boolean', short: 'h', default: false };
    const { positionals, values } = parseArgs({ allowPositionals: true, options: { ...options, help } });
    if (values.help) {
      console.log(`usage: ${usage}`);
      process.exit(0);
    }
    const unknown = positionals.find((name) => !stores.includes(name));
    if (unknown !== undefined) throw new Error(`Expected the name of a store (${stores.join(', ')}), got ${unknown}`);
    if (!isValid(values)) throw new Error('Expected a positive number');
    return { names: positionals.length > 0 ? positionals : stores, values };
  } catch (error) {
    console.error(`${error.message}\nusage: ${usage.split('\n', 1)[0]}`);
    process.exit(64);
  }
}

/**
 * Measures one store after the other, and ends what each has started before the next one.
 *
 * @param measure - called with a name and `onEnd`, to be told how to end whatever was started.
 */
export async function forEachStore(names, measure) {
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => void interrupt(signal));
  try {
    for (const name of names) {
      await measure(name, (end) => ends.unshift(end));
      await endAll();
    }
  } catch (error) {
    // What is measured meanwhile fails, since its server is ended under it.
    if (!isInterrupted) throw error;
  } finally {
    await endAll();
  }
}

async function interrupt(signal) {
  if (isInterrupted) return;
  isInterrupted = true;
  await endAll();
  process.exit(signal === 'SIGINT' ? 130 : 143);
}

async function endAll() {
  while (ends.length > 0) {
    try {
      await ends.shift()();
    } catch (error) {
      console.error(error);
    }
  }
}
