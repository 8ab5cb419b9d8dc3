import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const run = promisify(execFile);
const PROGRAM = fileURLToPath(new URL('../../examples/fencing/late-worker.js', import.meta.url));

it('B18 TK2 the example of a late worker shows that it is refused before and after the newer one has written', async () => {
  const { stdout } = await run(process.execPath, [PROGRAM]);
  expect(stdout.match(/worker-a is refused: lessor: lost the lease/g)?.length).toBe(2);
  expect(stdout.trim().split('\n').at(-1)).toBe('job-42 is "done"');
});
