/** Run it: node --test examples/model-based. For Vitest the first import is `import { it } from 'vitest'`. */
import { it } from 'node:test';
import assert from 'node:assert/strict';
import { paths } from './model.js';
import { play } from './play.js';
import { HastyUploader, Uploader } from './uploader.js';

for (const path of paths()) it(`keeps to its protocol: ${path.join(', ')}`, () => play(path, Uploader));

it('would be caught, did it call a file finished whoever has the run', () => {
  const walkAll = () => paths().forEach((path) => play(path, HastyUploader));
  assert.throws(walkAll, (error) => {
    console.log(`Found ${error.message.split('\n')[0]}`);
    return true;
  });
});
