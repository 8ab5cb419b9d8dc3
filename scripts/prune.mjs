// Removes from dist what no source stands behind any more. After the compiler and not before it, so that whoever runs the
// package meanwhile always finds one.
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

for (const file of readdirSync(join(root, 'dist'), { recursive: true })) {
  if (statSync(join(root, 'dist', file), { throwIfNoEntry: false })?.isFile() && !existsSync(sourceOf(file))) {
    rmSync(join(root, 'dist', file));
  }
}

function sourceOf(file) {
  return join(root, file.replace(/\.(js|js\.map|d\.ts|d\.ts\.map)$/, '.ts'));
}
