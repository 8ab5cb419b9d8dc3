/** The pieces of TypeScript in documents and in documentation comments, made into modules that compile and run. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sourceFiles } from './imports.ts';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface Snippet {
  /** `README.md:34`. */
  readonly where: string;
  readonly code: string;
  /** Why it is only compiled. */
  readonly noRun: string | undefined;
}

/** Code blocks of README.md and docs. One is left unrun by "```ts no-run: the reason". */
export function documentSnippets(): Snippet[] {
  const documents = ['README.md', 'CONTRIBUTING.md', ...markdownIn('docs')].filter((path) =>
    existsSync(join(ROOT, path)),
  );
  return documents.flatMap((path) => {
    const text = readFileSync(join(ROOT, path), 'utf8');
    return [
      ...text.matchAll(/^```(?:ts|typescript|js|mjs)\b(?: no-run: (?<why>.+))?[^\n]*\n(?<code>[\s\S]*?)^```$/gm),
    ].map(({ groups, index }) => ({
      where: place(path, text, index),
      code: groups?.['code'] ?? '',
      noRun: groups?.['why'],
    }));
  });
}

const SERVER = /\b(?:RedisStore|PostgresStore|postgres:|rediss?:)/;

/** Every `@example`. It runs unless it speaks of something that only its reader has, such as a server. */
export function exampleSnippets(): Snippet[] {
  return sourceFiles('src', 'machines').flatMap(({ path, text }) =>
    [...text.matchAll(/@example\n(?<code>(?:[ \t]*\*(?!\/)(?! @)[^\n]*\n)+)/g)].map(({ groups, index }) => ({
      where: place(path, text, index),
      code: (groups?.['code'] ?? '').replaceAll(/^[ \t]*\* ?/gm, ''),
      noRun: SERVER.test(groups?.['code'] ?? '') ? 'it needs a server' : undefined,
    })),
  );
}

function markdownIn(folder: string): string[] {
  if (!existsSync(join(ROOT, folder))) return [];
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.md')).map((name) => join(folder, name));
}

function place(path: string, text: string, index: number): string {
  return `${path}:${text.slice(0, index).split('\n').length}`;
}

/** What an example may speak of without showing where it has it from: names and their types. */
const ASSUMED: Readonly<Record<string, string>> = {
  store: 'LeaseStore',
  leases: 'LeaseManager',
  lease: 'HeldLease',
  signal: 'AbortSignal',
  work: '(signal?: AbortSignal) => Promise<void>',
  importRows: '(options: { fencingToken: number; signal: AbortSignal }) => Promise<void>',
  writeReport: '(options: { fencingToken: number; signal: AbortSignal }) => Promise<void>',
  doJob: '(lease: HeldLease, signal: AbortSignal) => Promise<void>',
  createBrowserInspector: '() => { inspect: Inspector }',
  MyStore: 'new (options: { now: () => number }) => LeaseStore',
  clock: '{ now: () => number; advance: (seconds: number) => Promise<void> }',
  client: 'any',
  pool: "import('pg').Pool",
  database: 'any',
};

/** Where the names come from that are so well known that an example leaves their import out. */
const MODULES: Readonly<Record<string, readonly string[]>> = {
  xstate: ['assign', 'createActor', 'sendTo', 'setup'],
  'node:crypto': ['randomUUID'],
  ioredis: ['Redis'],
  pg: ['Pool'],
};

/** The snippet as a module: with the imports that it leaves out, and what it assumes declared. Then it cannot run. */
export function moduleOf({ code, noRun }: Snippet): { text: string; runs: boolean } {
  const free = (name: string): boolean => mentions(code, name) && !binds(code, name);
  const assumed = Object.entries(ASSUMED).filter(([name]) => free(name));
  const needed = `${code}\n${assumed.map(([, type]) => type).join('\n')}`;
  const imports = [
    ['lessor', publicNames('src/index.ts')],
    ['lessor/testing', publicNames('src/testing/index.ts')],
    ...Object.entries(MODULES),
  ] as const;
  const lines = imports.flatMap(([from, names]) => {
    const used = names.filter((name) => mentions(needed, name) && !binds(code, name));
    return used.length > 0 ? [`import { ${used.join(', ')} } from '${from}';`] : [];
  });
  const declared = assumed.map(([name, type]) => `declare const ${name}: ${type};`);
  return {
    text: [...lines, ...declared, code, 'export {};', ''].join('\n'),
    runs: noRun === undefined && assumed.length === 0,
  };
}

function publicNames(entry: string): string[] {
  if (!existsSync(join(ROOT, entry))) return [];
  const lists = [...readFileSync(join(ROOT, entry), 'utf8').matchAll(/^export (?:type )?\{([^}]*)\}/gm)];
  return lists.flatMap(([, names = '']) => names.split(',').map((name) => name.trim())).filter(Boolean);
}

/** Used as a name of its own: no member, no key, no part of a text or a comment. */
function mentions(code: string, name: string): boolean {
  const bare = code.replaceAll(/\/\/[^\n]*|\/\*[\s\S]*?\*\/|'[^'\n]*'/g, '');
  return new RegExp(String.raw`(?<![.\w$])${name}\b(?!\s*\??:)`).test(bare);
}

/** Declared or imported by the code itself, as a variable, a parameter or a class. */
function binds(code: string, name: string): boolean {
  const forms = [
    String.raw`\b(?:const|let|using|function|class)\s+${name}\b`,
    String.raw`\b(?:const|let)\s+\{[^}]*\b${name}\b[^}]*\}\s*=`,
    String.raw`\bimport\s+(?:type\s+)?(?:\w+,\s*)?\{[^}]*\b${name}\b[^}]*\}\s+from`,
    String.raw`\bimport\s+${name}\b`,
    String.raw`\(\s*(?:\{[^})]*\b|[^()]*?\b)?${name}\b[^()]*\)\s*=>`,
  ];
  return new RegExp(forms.join('|')).test(code);
}
