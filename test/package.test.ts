/** Case PK1, on the package as users get it: packed, installed in a folder of its own, and run from there. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  bin: { lessor: string };
  exports: Record<string, unknown>;
  dependencies: Record<string, string>;
};

const ENTRIES = Object.keys(manifest.exports)
  .filter((entry) => !entry.endsWith('.json'))
  .map((entry) => entry.replace('.', 'lessor'));

/** What comes with every installation: the dependencies and the one peer that is not optional. */
const REQUIRED = [...Object.keys(manifest.dependencies), 'xstate'];

interface Client {
  /** The packages that have its code or its types. */
  readonly packages: readonly string[];
  /** A user's own client, given to the store that it is for. */
  readonly code: string;
}

const CLIENTS: Readonly<Record<string, Client>> = {
  pg: {
    packages: ['pg', '@types/pg'],
    code: `import { PostgresStore } from 'lessor';
import pg from 'pg';
export const onPg = PostgresStore.open({ pool: new pg.Pool() });`,
  },
  ioredis: {
    packages: ['ioredis'],
    code: `import { RedisStore as OnIoredis } from 'lessor';
import { Cluster, Redis } from 'ioredis';
export const onIoredis = [OnIoredis.open({ client: new Redis() }), OnIoredis.open({ client: new Cluster([]) })];`,
  },
  redis: {
    packages: ['redis'],
    code: `import { RedisStore as OnRedis } from 'lessor';
import { createClient, createCluster } from 'redis';
export const onRedis = [OnRedis.open({ client: createClient() }), OnRedis.open({ client: createCluster({ rootNodes: [] }) })];`,
  },
  'better-sqlite3': {
    packages: ['@types/better-sqlite3'],
    code: `import { SqliteStore } from 'lessor';
import Database from 'better-sqlite3';
export const onSqlite = SqliteStore.open({ database: new Database('leases.db') });`,
  },
};

const CONSUMERS: ReadonlyArray<[resolution: string, beside: string, clients: readonly Client[]]> = [
  ['nodenext', 'no client', []],
  ...Object.entries(CLIENTS).map(([name, client]): [string, string, Client[]] => ['nodenext', name, [client]]),
  ['bundler', 'no client', []],
  ['bundler', 'every client', Object.values(CLIENTS)],
];

/** A Node with a driver of its own needs no client for SQLite. */
const URLS: ReadonlyArray<[url: string, client: string]> = [
  ['postgres://127.0.0.1:1/none', 'pg'],
  ['redis://127.0.0.1:1', 'ioredis'],
  ...(isBuiltin('node:sqlite') ? [] : [['sqlite:./none.db', 'libsql'] satisfies [string, string]]),
];

let folder: string;
let installed: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'lessor-package-'));
  installed = join(folder, 'installed');
  await mkdir(installed);
  await writeFile(join(installed, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }));
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: ROOT });
  const tarball = (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? '';
  // Where npm would put it, without the network: what it depends on is linked from here.
  await mkdir(join(installed, 'node_modules/lessor'), { recursive: true });
  const tar = ['-xzf', join(folder, tarball), '-C', 'node_modules/lessor', '--strip-components', '1'];
  await run('tar', tar, { cwd: installed });
});

afterAll(() => rm(folder, { recursive: true, force: true }));

describe('PK1. The package can be imported and type-checked by every kind of consumer', () => {
  let consumer: string;

  beforeAll(async () => {
    consumer = await consumerWith('esm', []);
  });

  it.each(ENTRIES)('import of %s works', async (entry) => {
    expect(
      await evaluate(consumer, `const it = await import('${entry}'); console.log(Object.keys(it).length > 0)`),
    ).toBe('true');
  });

  it.each(ENTRIES)('require of %s works, on a Node that can', async (entry) => {
    const script = `console.log(Object.keys(require('${entry}')).length > 0)`;
    expect(await evaluate(consumer, script, 'commonjs')).toBe('true');
  });

  it('the registry works there without any client', async () => {
    const script = `
      import { LeaseRegistry } from 'lessor';
      const lease = new LeaseRegistry({ ttlSeconds: 10 }).acquire('run-1', 'worker-a', 0);
      console.log(lease.leaseId, lease.expiresAt);`;
    expect(await evaluate(consumer, script)).toBe('run-1:worker-a:1 10');
  });

  it('its command runs there', async () => {
    const command = join(consumer, 'node_modules/lessor', manifest.bin.lessor);
    const { stdout } = await run(process.execPath, [command, '--help'], { cwd: consumer });
    expect(stdout).toContain('lessor run');
  });

  it.each(URLS)('a store at %s without its client is a sentence that says what to install', async (url, client) => {
    const script = `
      import { openStore } from 'lessor';
      try { await openStore('${url}'); } catch (error) { console.log(error.name, error.message); }`;
    expect(await evaluate(consumer, script)).toMatch(new RegExp(`^StoreUnavailableError .*npm install ${client}`));
  });

  it.each(CONSUMERS)('it type-checks with moduleResolution %s and %s', async (resolution, beside, clients) => {
    const typed = await consumerWith(`${resolution} ${beside}`, [
      '@types/node',
      ...clients.flatMap(({ packages }) => packages),
    ]);
    await writeFile(join(typed, 'consumer.ts'), [CONSUMER, ...clients.map(({ code }) => code)].join('\n'));
    await writeFile(join(typed, 'tsconfig.json'), JSON.stringify(tsconfig(resolution)));
    const { stdout } = await run(process.execPath, [TSC, '-p', typed], { cwd: typed }).catch(
      (error: unknown) => error as { stdout: string },
    );
    // The declarations of every library are checked, ours included; only what concerns this package counts.
    expect(stdout.split('\n').filter((line) => /^(consumer|node_modules\/lessor)/.test(line))).toEqual([]);
  });
});

/** A folder with the packed package in it, and links to packages that this project has installed. */
async function consumerWith(name: string, packages: readonly string[]): Promise<string> {
  const consumer = join(folder, name);
  await cp(installed, consumer, { recursive: true, verbatimSymlinks: true });
  for (const name of [...REQUIRED, ...packages]) {
    const target = join(ROOT, 'node_modules', name);
    if (!existsSync(target)) throw new Error(`${name} is not installed here`);
    const link = join(consumer, 'node_modules', name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(target, link);
  }
  return consumer;
}

async function evaluate(cwd: string, script: string, type: 'module' | 'commonjs' = 'module'): Promise<string> {
  const { stdout } = await run(process.execPath, [`--input-type=${type}`, '--no-warnings', '-e', script], { cwd });
  return stdout.trim();
}

const CONSUMER = `
import { LeaseRegistry, type Lease, type LeaseStore } from 'lessor';
import * as machines from 'lessor/machines';
import * as testing from 'lessor/testing';
const lease: Lease | null = new LeaseRegistry({ ttlSeconds: 10 }).acquire('run-1', 'worker-a', 0);
// @ts-expect-error the time is a number of seconds
new LeaseRegistry({ ttlSeconds: 10 }).acquire('run-1', 'worker-a', '0');
export type Renewed = Awaited<ReturnType<LeaseStore['renew']>>;
export { lease, machines, testing };
`;

function tsconfig(resolution: string): object {
  return {
    compilerOptions: {
      target: 'es2022',
      lib: ['es2023', 'esnext.disposable'],
      types: ['node'],
      strict: true,
      noEmit: true,
      skipLibCheck: false,
      module: resolution === 'nodenext' ? 'nodenext' : 'preserve',
      moduleResolution: resolution,
    },
    files: ['consumer.ts'],
  };
}
