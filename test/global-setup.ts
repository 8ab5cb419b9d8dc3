/** Builds once before the tests: the processes they start run what users run, the compiled package. */
import { spawnSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = new URL('..', import.meta.url).pathname;
const SOURCES = ['src', 'machines', 'tsconfig.json', 'tsconfig.build.json', 'package.json'];
const BUILT = 'dist/src/index.js';

export default function setup(): void {
  if (process.env['LESSOR_BUILT'] === '1' || newest([BUILT]) > newest(SOURCES)) return;
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  // What was emitted can be tested in spite of a type error. The check before the tests shows and counts those.
  const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd: ROOT, stdio: 'ignore' });
  if (status !== 0) process.stderr.write('The build has errors: run `npm run build`.\n');
}

/** When the newest of the files was changed, in milliseconds; 0 where there is none. */
function newest(paths: readonly string[]): number {
  return Math.max(0, ...paths.flatMap(filesOf).map((file) => statSync(file).mtimeMs));
}

function filesOf(path: string): string[] {
  const whole = join(ROOT, path);
  const info = statSync(whole, { throwIfNoEntry: false });
  if (info === undefined) return [];
  if (info.isFile()) return [whole];
  return readdirSync(whole, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
}
