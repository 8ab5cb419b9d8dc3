import { readFileSync } from 'node:fs';

/**
 * @typedef {object} Mutant
 * @property {string} name - what is wrong, in words.
 * @property {string} property - the statement that it turns round.
 * @property {string} file
 * @property {string} from - stands exactly once in the file.
 * @property {string} to
 * @property {readonly string[]} tests - the files that must kill it.
 * @property {string} [titled] - a pattern: only tests with such titles. Without it all of the files.
 * @property {boolean} [built] - the tests run the compiled package.
 */

/** The mutant's file with its error. @throws where the text does not stand there exactly once. */
export function mutated(text, { name, file, from, to }) {
  const found = text.split(from).length - 1;
  if (found !== 1) throw new Error(`"${name}": expected its text once in ${file}, found it ${found} times`);
  if (from === to) throw new Error(`"${name}" changes nothing`);
  return text.replace(from, () => to);
}

/** @throws where it has no place in the working tree any more. */
export function check(mutant) {
  const read = (file) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
  mutated(read(mutant.file), mutant);
  for (const test of mutant.tests) read(test);
}
