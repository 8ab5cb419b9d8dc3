/** Which store the command uses: `--store`, else `LESSOR_STORE`, else a file of this user's on this machine. */
import { isAbsolute, join, resolve } from 'node:path';
import { StoreUnavailableError } from '../errors.ts';
import { homeFolder, makeFolder } from '../stores/sqlite/folder.ts';
import { UsageError } from './usage.ts';

/** The URL, so that it means the same in another directory: the command inherits it. */
export function resolveStoreUrl(option: string | undefined): string {
  const url = option ?? process.env['LESSOR_STORE'] ?? '';
  if (url === '') return `sqlite:${defaultFile()}`;
  if (url.startsWith('memory:')) {
    throw new UsageError('lessor', 'Expected a store that other processes see too, got one in the memory of this one');
  }
  const path = /^sqlite:(?!~\/|:memory:$)(.+)$/s.exec(url)?.[1];
  return path === undefined || isAbsolute(path) ? url : `sqlite:${resolve(workingDirectory(), path)}`;
}

function workingDirectory(): string {
  try {
    return process.cwd();
  } catch (error) {
    const text = 'The working directory is gone, and the store is named relative to it. Give a whole path';
    throw new StoreUnavailableError(text, { cause: error });
  }
}

/** For this user alone. */
function defaultFile(): string {
  const directory = stateDirectory(process.platform, process.env, homeFolder);
  try {
    makeFolder(directory, 0o700);
  } catch (error) {
    const text = `The folder for the leases, ${JSON.stringify(directory)}, cannot be made. Name a store: --store or LESSOR_STORE`;
    throw new StoreUnavailableError(text, { cause: error });
  }
  return join(directory, 'leases.db');
}

/** Where programs keep what should outlive them and is not the user's to edit. */
export function stateDirectory(platform: NodeJS.Platform, env: NodeJS.ProcessEnv, home: () => string): string {
  if (platform === 'win32') return join(env['LOCALAPPDATA'] ?? join(home(), 'AppData', 'Local'), 'lessor');
  if (platform === 'darwin') return join(home(), 'Library', 'Application Support', 'lessor');
  const state = env['XDG_STATE_HOME'];
  return join(state !== undefined && isAbsolute(state) ? state : join(home(), '.local', 'state'), 'lessor');
}
