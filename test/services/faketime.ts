/** libfaketime: steps the wall clock of one process that a test starts. */
import { existsSync, readdirSync } from 'node:fs';
import { aptInstall } from './apt.ts';
import { reportAbsent } from './service.ts';

/** The path of the library, or null with a printed line where it cannot be had. Fails in CI then. */
export async function findLibfaketime(): Promise<string | null> {
  const found = findLibrary() ?? ((await aptInstall('libfaketime')) ? findLibrary() : null);
  return found ?? reportAbsent('libfaketime', 'not installed, nor to be had by apt-get');
}

function findLibrary(): string | null {
  const folders = existsSync('/usr/lib') ? readdirSync('/usr/lib').map((folder) => `/usr/lib/${folder}`) : [];
  const files = folders.map((folder) => `${folder}/faketime/libfaketimeMT.so.1`);
  return files.find((file) => existsSync(file)) ?? null;
}
