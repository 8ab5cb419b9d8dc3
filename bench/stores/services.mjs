/** The servers that the tests start, for a bench: their TypeScript is bundled, since Node 20 does not run it. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { buildSync } from 'esbuild';
import { CACHE } from './packages.mjs';

/** The exports of `test/services/<name>.ts`. */
export async function loadService(name) {
  mkdirSync(CACHE, { recursive: true });
  // Within this package's `node_modules`, so that it finds the clients.
  const outfile = join(CACHE, `${name}-service.mjs`);
  const entry = fileURLToPath(new URL(`../../test/services/${name}.ts`, import.meta.url));
  buildSync({ entryPoints: [entry], outfile, bundle: true, platform: 'node', format: 'esm', packages: 'external' });
  return import(pathToFileURL(outfile).href);
}
