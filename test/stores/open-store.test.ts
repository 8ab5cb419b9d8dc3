import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import { StoreUnavailableError } from '../../src/errors.ts';
import { MemoryStore } from '../../src/stores/memory.ts';
import { openStore } from '../../src/stores/open-store.ts';
import { SqliteStore } from '../../src/stores/sqlite.ts';

const folder = mkdtempSync(join(tmpdir(), 'lessor-open-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const REQUEST = { runId: 'run', workerId: 'worker', acquisitionId: 'first', ttlSeconds: 30 };

it('`memory:` is a store in this process', async () => {
  await using store = await openStore('memory:');
  expect(store).toBeInstanceOf(MemoryStore);
  expect(await store.acquire(REQUEST)).toMatchObject({ status: 'granted' });
});

it('`sqlite:` is a file, relative or absolute, whose folder is made, and whose grants survive a power loss', async () => {
  const file = join(folder, 'new', 'deep', 'a b%20?.db');
  for (const url of [`sqlite:${file}`, `sqlite://${file}`, `sqlite:${relative('.', file)}`]) {
    await using store = await openStore(url, { busyTimeoutSeconds: 1 });
    expect(store).toBeInstanceOf(SqliteStore);
    expect(store.durability).toEqual({ survives: 'power-loss', warnings: [] });
    const answer = await store.acquire({ ...REQUEST, acquisitionId: url });
    expect(answer).toMatchObject({ status: 'granted', lease: { fencingToken: 1 } });
  }
  expect(existsSync(file)).toBe(true);
});

it('`~/` is the home of the user, at the beginning only', async () => {
  vi.stubEnv('HOME', folder);
  try {
    expect(homedir()).toBe(folder);
    await (await openStore('sqlite:~/home.db')).close();
    await (await openStore(`sqlite:${folder}/~/tilde.db`)).close();
  } finally {
    vi.unstubAllEnvs();
  }
  expect(existsSync(join(folder, 'home.db'))).toBe(true);
  expect(existsSync(join(folder, '~', 'tilde.db'))).toBe(true);
});

it('I. a URL that names no store is refused by name, before anything is opened', async () => {
  for (const url of [
    '',
    'leases.db',
    'mysql://localhost',
    'sqlite:',
    'sqlite::memory:',
    'sqlite://host/a.db',
    'memory:x',
    '__proto__:',
    'SQLITE:a.db',
    'sqlite:a\0b',
    'redis:bar',
    'postgres:bar',
    'postgres://user:secret@[host',
  ]) {
    await expect(openStore(url), url).rejects.toThrow(RangeError);
  }
  await expect(openStore('mysql://localhost')).rejects.toThrow(/memory:.*sqlite:.*mysql/);
  await expect(openStore(undefined as unknown as string)).rejects.toThrow(TypeError);
  await expect(openStore('postgres://user:secret@[host')).rejects.not.toThrow('secret');
});

it('I. a wait that makes no sense is refused before a file is made', async () => {
  const url = `sqlite:${folder}/not-made/file.db`;
  await expect(openStore(url, { busyTimeoutSeconds: -1 })).rejects.toThrow(RangeError);
  expect(existsSync(join(folder, 'not-made'))).toBe(false);
});

it('B14 a file that cannot be opened is unavailable, with the cause', async () => {
  await (await openStore(`sqlite:${folder}/file.db`)).close();
  for (const path of [folder, `${folder}/file.db/below.db`, '/proc/lessor/leases.db']) {
    const opening = openStore(`sqlite:${path}`);
    await expect(opening, path).rejects.toThrow(StoreUnavailableError);
    await expect(opening).rejects.toHaveProperty('cause', expect.any(Error));
  }
});

it('B14 `postgres:` and `redis:` open those stores, and say so when nothing listens there', async () => {
  for (const scheme of ['postgres:', 'postgresql:', 'redis:']) {
    const opening = openStore(`${scheme}//127.0.0.1:1/leases`, { requestTimeoutSeconds: 0.3 });
    await expect(opening, scheme).rejects.toThrow(StoreUnavailableError);
  }
});
