/** The errors that `npm run mutation` plants still have their place in the sources. */
import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';

it('V10 each planted error has its text once in its file, and tests that are there', () => {
  const told = execFileSync(process.execPath, ['scripts/mutation/mutate.mjs', '--check'], { encoding: 'utf8' });
  expect(Number(/^\d+/.exec(told)?.[0])).toBeGreaterThan(100);
});
