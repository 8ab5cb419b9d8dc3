/**
 * Stately's own reader of machine files, `@xstate/machine-extractor`: what the editor and its import see of our source.
 *
 * It parses text and runs none of it. Since it was written for xstate 4, whose action creators it calls for inline actions,
 * it is bundled here with a stand-in for those.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const require = createRequire(import.meta.url);
const STAND_IN = fileURLToPath(new URL('no-actions.cjs', import.meta.url));

/** A machine as the extractor gives it: xstate 4's form, in which a guard is a `cond`. */
export interface ExtractedMachine {
  toConfig(): unknown;
}

export type Extract = (source: string) => { readonly machines: readonly (ExtractedMachine | undefined)[] } | null;

export const EXTRACTOR_VERSION = (require('@xstate/machine-extractor/package.json') as { version: string }).version;

export async function loadExtractor(): Promise<Extract> {
  const folder = mkdtempSync(join(tmpdir(), 'lessor-extractor-'));
  try {
    const outfile = join(folder, 'extractor.cjs');
    await build({
      entryPoints: [require.resolve('@xstate/machine-extractor')],
      bundle: true,
      platform: 'node',
      outfile,
      conditions: [],
      alias: { 'xstate/lib/actions': STAND_IN, 'xstate/lib/types': STAND_IN },
    });
    return (require(outfile) as { extractMachinesFromFile: Extract }).extractMachinesFromFile;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The source of a file of `machines/`. */
export function sourceOf(file: string): string {
  return readFileSync(new URL(`../../../machines/${file}`, import.meta.url), 'utf8');
}
