/** Debian packages for tests, where the tests run as root. Nothing that is installed is started as a service. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const LOCK_SECONDS = 180;
const POLICY = '/usr/sbin/policy-rc.d';

/** Whether the packages could be installed. False where there is no apt-get or no right to use it. */
export async function aptInstall(...packages: readonly string[]): Promise<boolean> {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return false;
  const forbade = await forbidServices();
  try {
    if (await aptGet('install', '--yes', '--no-install-recommends', ...packages)) return true;
    return (await aptGet('update')) && (await aptGet('install', '--yes', '--no-install-recommends', ...packages));
  } finally {
    if (forbade) await rm(POLICY, { force: true });
  }
}

/** Waits for a lock that another apt-get holds; any other failure is an answer. */
async function aptGet(...args: readonly string[]): Promise<boolean> {
  const deadline = performance.now() + LOCK_SECONDS * 1000;
  for (;;) {
    try {
      await run('apt-get', ['-o', `DPkg::Lock::Timeout=${LOCK_SECONDS}`, '-q', ...args], {
        env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
        maxBuffer: 2 ** 26,
      });
      return true;
    } catch (error) {
      const said = String((error as { stderr?: unknown }).stderr ?? error);
      if (!/could not get lock|unable to (?:acquire|lock)/i.test(said) || performance.now() > deadline) return false;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

/** Debian asks this script whether a package may start its service. One that is there already is left alone. */
async function forbidServices(): Promise<boolean> {
  return writeFile(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755, flag: 'wx' }).then(
    () => true,
    () => false,
  );
}
