/** The imports of source files, read from their text: the forms that this project uses, and no others. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const STATIC =
  /^(?:import|export)\s+(?<type>type\s+)?(?:(?:\{[^}]*\}|\*(?:\s+as\s+\w+)?|\w+(?:,\s*\{[^}]*\})?)\s+from\s+)?'(?<to>[^']+)'/gm;
const DYNAMIC = /\bimport\(\s*'(?<to>[^']+)'/g;

export interface Import {
  /** Which file, from the root of the project. */
  readonly from: string;
  /** A file likewise, or the name of a package. */
  readonly to: string;
  readonly external: boolean;
  /** Gone at run time. */
  readonly typeOnly: boolean;
  /** `import()`: at run time, when it is reached. */
  readonly dynamic: boolean;
}

export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly imports: readonly Import[];
}

export function sourceFiles(...folders: readonly string[]): SourceFile[] {
  const paths = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  );
  return paths
    .filter((path) => path.endsWith('.ts'))
    .toSorted()
    .map((path) => {
      const text = readFileSync(join(ROOT, path), 'utf8');
      return { path, text, imports: importsOf(path, text) };
    });
}

function importsOf(path: string, text: string): Import[] {
  const found = (pattern: RegExp, dynamic: boolean): Import[] =>
    [...text.matchAll(pattern)].map(({ groups }) => ({
      ...resolve(path, groups?.['to'] ?? ''),
      from: path,
      typeOnly: groups?.['type'] !== undefined,
      dynamic,
    }));
  return [...found(STATIC, false), ...found(DYNAMIC, true)];
}

function resolve(from: string, to: string): { to: string; external: boolean } {
  if (to.startsWith('.')) return { to: join(dirname(from), to), external: false };
  const [scope = to, name] = to.split('/');
  return { to: to.startsWith('@') ? `${scope}/${name}` : scope, external: true };
}

/** Circles of modules that need each other when they are loaded, each once, as `a -> b -> a`. */
export function runTimeCycles(files: readonly SourceFile[]): string[] {
  const needs = new Map(
    files.map(({ path, imports }) => [path, imports.filter((of) => !of.typeOnly && !of.dynamic).map(({ to }) => to)]),
  );
  const cycles = new Set<string>();
  const done = new Set<string>();
  const visit = (path: string, above: readonly string[]): void => {
    const at = above.indexOf(path);
    if (at !== -1) return void cycles.add([...above.slice(at), path].join(' -> '));
    if (done.has(path)) return;
    for (const next of needs.get(path) ?? []) visit(next, [...above, path]);
    done.add(path);
  };
  for (const { path } of files) visit(path, []);
  return [...cycles];
}
