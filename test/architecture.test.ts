/** Who may import whom, read from every import of `src` and `machines`. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Import, runTimeCycles, sourceFiles } from './support/imports.ts';

const files = sourceFiles('src', 'machines');
const imports = files.flatMap((file) => file.imports);

const ENGINES = ['memory', 'sqlite', 'postgres', 'redis'];
const CLIENTS = ['better-sqlite3', 'ioredis', 'libsql', 'node:sqlite', 'pg', 'redis'];
const RUNNERS = ['vitest', 'jest', 'mocha', 'ava', 'node:test', '@jest/globals'];
const MOST_LINES = 250;

const TIMERS: Readonly<Record<string, string>> = {
  'src/stores/postgres/caller.ts': 'ends a request that is not answered',
  'src/stores/postgres/listener.ts': 'listens again after its connection was cut',
  'src/stores/redis/deadlines.ts': 'ends a request that is not answered',
  'src/stores/sqlite/turns.ts': 'asks again for the lock on the file',
};

interface Rule {
  readonly breaks: (of: Import) => boolean;
  /** An import that breaks it, to see that it is noticed. */
  readonly planted: readonly [from: string, to: string];
}

const rules: Record<string, Rule> = {
  'machines import nothing of src but types': {
    breaks: ({ from, to, typeOnly }) => within(from, 'machines') && within(to, 'src') && !typeOnly,
    planted: ['machines/lease.machine.ts', 'src/options.ts'],
  },
  'machines import no package but xstate': {
    breaks: ({ from, to, external }) => within(from, 'machines') && external && to !== 'xstate',
    planted: ['machines/lease.machine.ts', 'node:fs'],
  },
  'the rules of a lease import nothing but types': {
    breaks: ({ from, typeOnly }) => from === 'machines/lease.rules.ts' && !typeOnly,
    planted: ['machines/lease.rules.ts', 'xstate'],
  },
  'the words import nothing': {
    breaks: ({ from }) => from === 'src/lease.ts',
    planted: ['src/lease.ts', 'src/errors.ts'],
  },
  'stores never import each other, and what they share imports none of them': {
    breaks: ({ from, to }) =>
      within(from, 'src/stores') &&
      from !== 'src/stores/open-store.ts' &&
      engineOf(to) !== undefined &&
      engineOf(to) !== engineOf(from),
    planted: ['src/stores/sqlite.ts', 'src/stores/postgres.ts'],
  },
  'a store imports the contract, the rules, the helpers of src and its client': {
    breaks: ({ from, to, external }) =>
      within(from, 'src/stores') &&
      !external &&
      !within(to, 'src/stores', 'src/inspect', 'src/session', 'machines') &&
      !inSrcItself(to),
    planted: ['src/stores/sqlite.ts', 'src/manager/lease-manager.ts'],
  },
  'a client is loaded when its store is opened, never by an import': {
    breaks: ({ to, typeOnly, dynamic }) => CLIENTS.includes(to) && !typeOnly && !dynamic,
    planted: ['src/stores/postgres.ts', 'pg'],
  },
  'only a store or its opening loads a client': {
    breaks: ({ from, to, typeOnly }) => CLIENTS.includes(to) && !typeOnly && !within(from, 'src/stores'),
    planted: ['src/cli/main.ts', 'libsql'],
  },
  'the manager does not know which store it has': {
    breaks: ({ from, to }) =>
      within(from, 'src/manager', 'src/session') && (engineOf(to) !== undefined || to === 'src/stores/open-store.ts'),
    planted: ['src/manager/lease-manager.ts', 'src/stores/memory.ts'],
  },
  'the registry imports no store, no manager and no session': {
    breaks: ({ from, to }) => within(from, 'src/registry') && within(to, 'src/stores', 'src/manager', 'src/session'),
    planted: ['src/registry/lease-registry.ts', 'src/stores/store.ts'],
  },
  'nothing imports the command': {
    breaks: ({ from, to }) => !within(from, 'src/cli') && within(to, 'src/cli'),
    planted: ['src/index.ts', 'src/cli/main.ts'],
  },
  'nothing but the command imports the dashboard': {
    breaks: ({ from, to }) => !within(from, 'src/dashboard', 'src/cli') && within(to, 'src/dashboard'),
    planted: ['src/manager/lease-manager.ts', 'src/dashboard/server.ts'],
  },
  'nothing but the command imports what is published for tests': {
    breaks: ({ from, to }) => !within(from, 'src/testing', 'src/cli') && within(to, 'src/testing'),
    planted: ['src/stores/memory.ts', 'src/testing/scenarios.ts'],
  },
  'nothing that is published imports a test runner': {
    breaks: ({ to }) => RUNNERS.includes(to),
    planted: ['src/testing/suite.ts', 'vitest'],
  },
  'nothing imports the public entry of src': {
    breaks: ({ to }) => to === 'src/index.ts',
    planted: ['src/stores/memory.ts', 'src/index.ts'],
  },
  'every package that is imported comes with this one or is its peer': {
    breaks: ({ to, external, typeOnly }) =>
      external && !to.startsWith('node:') && !published().includes(to) && !(typeOnly && CLIENTS.includes(to)),
    planted: ['src/index.ts', 'lodash'],
  },
};

describe('the architecture', () => {
  for (const [rule, { breaks, planted }] of Object.entries(rules)) {
    it(rule, () => {
      expect(imports.filter(breaks).map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
      const [from, to] = planted;
      expect(breaks({ from, to, external: !/^(src|machines)\//.test(to), typeOnly: false, dynamic: false })).toBe(true);
    });
  }

  it('no two modules import each other in a circle at run time', () => {
    expect(runTimeCycles(files)).toEqual([]);
  });

  it('a store sets no timer without a written reason', () => {
    const timer = /\b(setTimeout|setInterval|setImmediate)\b|node:timers/;
    const setting = files.filter(({ path, text }) => within(path, 'src/stores') && timer.test(text));
    expect(setting.map(({ path }) => path)).toEqual(Object.keys(TIMERS));
  });

  it(`a file has at most ${MOST_LINES} lines`, () => {
    const long = files.filter(({ text }) => text.trimEnd().split('\n').length > MOST_LINES);
    expect(long.map(({ path }) => path)).toEqual([]);
  });

  it('the rules see the imports they speak of', () => {
    expect(files.length).toBeGreaterThan(20);
    expect(imports.some(({ from, to }) => from === 'src/stores/memory.ts' && to === 'machines/registry.logic.ts')).toBe(
      true,
    );
    expect(
      imports.some(({ from, to, typeOnly }) => within(from, 'machines') && to === 'src/lease.ts' && typeOnly),
    ).toBe(true);
  });
});

function within(path: string, ...folders: readonly string[]): boolean {
  return folders.some((folder) => path.startsWith(`${folder}/`));
}

/** A module at the top of src: words, errors, options, clocks. */
function inSrcItself(path: string): boolean {
  return /^src\/[^/]+$/.test(path);
}

/** Whose store the file belongs to: `src/stores/sqlite.ts`, `src/stores/sqlite-busy.ts` and `src/stores/sqlite/x.ts` are SQLite's. */
function engineOf(path: string): string | undefined {
  const name = /^src\/stores\/([a-z]+)/.exec(path)?.[1];
  return ENGINES.find((engine) => engine === name);
}

function published(): string[] {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as Record<
    string,
    object
  >;
  return ['dependencies', 'optionalDependencies', 'peerDependencies'].flatMap((kind) =>
    Object.keys(manifest[kind] ?? {}),
  );
}
