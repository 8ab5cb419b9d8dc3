/** Which store the command uses: `--store`, else `LESSOR_STORE`, else a file of this user's on this machine. */
import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { UsageError } from './usage.ts';

/** The URL, so that it means the same in another directory: the command inherits it. */
export function resolveStoreUrl(option: string | undefined): string {
  const url = option ?? process.env['LESSOR_STORE'] ?? '';
  if (url === '') return `sqlite:${defaultFile()}`;
  if (url.startsWith('memory:')) {
    throw new UsageError('lessor', 'Expected a store that other processes see too, got one in the memory of this one');
  }
  const path = /^sqlite:(?!~\/|:memory:$)(.+)$/s.exec(url)?.[1];
  return path === undefined || isAbsolute(path) ? url : `sqlite:${resolve(path)}`;
}

function defaultFile(): string {
  const directory = stateDirectory(process.platform, process.env, homedir());
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  return join(directory, 'leases.db');
}

/** Where programs keep what should outlive them and is not the user's to edit. */
export function stateDirectory(platform: NodeJS.Platform, env: NodeJS.ProcessEnv, home: string): string {
  if (platform === 'win32') return join(env['LOCALAPPDATA'] ?? join(home, 'AppData', 'Local'), 'lessor');
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', 'lessor');
  const state = env['XDG_STATE_HOME'];
  return join(state !== undefined && isAbsolute(state) ? state : join(home, '.local', 'state'), 'lessor');
}
