import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname } from 'node:path';
import { StoreUnavailableError } from '../../errors.ts';

/**
 * Makes the folder and those above it. Node's own recursive `mkdir` never returns where a file system answers ENOENT to a
 * folder that exists, as /proc does.
 *
 * @param mode - of the folder itself, should it be new.
 */
export function makeFolder(folder: string, mode?: number): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    // Another process may have been faster.
    if (!existsSync(folder)) throw error;
  }
}

/** @throws StoreUnavailableError for a user without one, as in some containers. */
export function homeFolder(): string {
  try {
    return homedir();
  } catch (error) {
    throw new StoreUnavailableError('This user has no home folder to keep leases in', { cause: error });
  }
}
