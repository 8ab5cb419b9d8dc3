import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { Scene } from './commands.ts';

const DEMO = fileURLToPath(new URL('../../examples/demo/demo.js', import.meta.url));

describe('demo', () => {
  it('a frozen worker loses its run, another takes over with a higher token, and the late write is refused', async () => {
    await using scene = new Scene();
    const env = { ...process.env, TMPDIR: scene.folder };
    const demo = scene.track(spawn(process.execPath, [DEMO], { env, stdio: ['ignore', 'pipe', 'inherit'] }));
    let output = '';
    demo.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    expect(await once(demo, 'close')).toEqual([0, null]);

    const story = [
      /worker-a +has the run, token 1\n/,
      /worker-a +writes line 1 with token 1: accepted\n/,
      /worker-b +asks for the run\n/,
      /demo +freezes worker-a/,
      /worker-b +has the run, token 2\n/,
      /worker-b +writes line 1 with token 2: accepted\n/,
      /demo +wakes worker-a/,
      /worker-a +writes line \d+ with token 1: REFUSED by the storage\n/,
      /worker-a +stops: Lost the lease on run "monthly-report" \(token 1\): expired\n/,
      /worker-b +is done\n/,
    ];
    for (const sentence of story) expect(output).toMatch(sentence);
    const places = [0, 3, 4, 5, 6, 7].map((index) => output.search(story[index] as RegExp));
    expect(places).toEqual(places.toSorted((one, other) => one - other));
    // In the storage nothing of the older token comes after the newer one's first line.
    const tokens = [...output.matchAll(/'worker-[ab]' │ (\d+)/g)].map(([, token]) => Number(token));
    expect(tokens).toEqual(tokens.toSorted((one, other) => one - other));
    expect(new Set(tokens)).toEqual(new Set([1, 2]));
    expect(readdirSync(scene.folder)).toEqual([]);
  });
});
