/** The code that the documents show compiles against the built package, and runs. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { documentSnippets, exampleSnippets, moduleOf, ROOT, type Snippet } from './support/snippets.ts';

const run = promisify(execFile);
const RUN_SECONDS = 20;

const kinds: Record<string, readonly Snippet[]> = {
  'a code block of a document': documentSnippets(),
  'an example of a documentation comment': exampleSnippets(),
};
const pieces = Object.values(kinds)
  .flat()
  .map((snippet, index) => ({ ...snippet, ...moduleOf(snippet), name: `snippet-${index}` }));

let folder: string;
let complaints: readonly string[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lessor-docs-'));
  linkPackages(folder);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  for (const { name, text } of pieces) writeFileSync(join(folder, `${name}.ts`), text);
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const { stdout } = await run(process.execPath, [tsc, '-p', folder], { cwd: folder }).catch(
    (error: unknown) => error as { stdout: string },
  );
  complaints = stdout.split('\n').filter((line) => line.includes('error TS'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the code in documents and documentation comments', () => {
  it.each(pieces)('compiles as it stands at $where', ({ name, text }) => {
    expect(
      complaints.filter((line) => line.startsWith(`${name}.ts`)),
      text,
    ).toEqual([]);
  });

  it.each(pieces.filter(({ runs }) => runs))('runs to its end at $where', async ({ name }) => {
    const home = mkdtempSync(join(folder, 'run-'));
    const options = { cwd: home, timeout: RUN_SECONDS * 1000 };
    await expect(run(process.execPath, [join(folder, 'out', `${name}.js`)], options)).resolves.toBeDefined();
  });
});

describe('the documents', () => {
  it('have code to check, and so have the documentation comments', () => {
    for (const [kind, found] of Object.entries(kinds)) expect(found.length, kind).toBeGreaterThan(1);
  });

  it('run most of what they show', () => {
    expect(pieces.filter(({ runs }) => runs).length).toBeGreaterThan(2);
  });
});

const TSCONFIG = {
  compilerOptions: {
    target: 'es2022',
    module: 'nodenext',
    lib: ['es2023', 'esnext.disposable'],
    types: ['node'],
    strict: true,
    skipLibCheck: true,
    outDir: 'out',
    rootDir: '.',
  },
  include: ['*.ts'],
};

/** What a user has in node_modules: the packages that are installed here, and this one. */
function linkPackages(folder: string): void {
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    if (!name.startsWith('.') && name !== 'lessor') symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
  symlinkSync(ROOT, join(modules, 'lessor'));
}
