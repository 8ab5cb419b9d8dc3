/** Real commands for the tests of the command line: started as lessor starts them, and ended whatever happens. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { isRunning, killCommand } from '../../src/cli/process-group.ts';

/** The built command, as users run it. */
export const LESSOR = new URL('../../dist/src/cli/main.js', import.meta.url).pathname;
export const WATCHDOG = new URL('../../dist/src/cli/watchdog.js', import.meta.url);

/**
 * A command that ignores the request to end. It notes the times, by the wall clock, at which it was asked and at which it
 * was last alive, so that what a test asserts does not depend on when the test gets to look.
 */
export const STUBBORN =
  'exec 2>/dev/null; trap "date +%s.%N >> asked" TERM; while :; do date +%s.%N > beat.new; mv beat.new beat; sleep 0.01; done';

/** Waits until the condition holds; says what was awaited when it does not come. */
export async function until(what: string, condition: () => boolean, seconds = 15): Promise<void> {
  const end = performance.now() + seconds * 1000;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`Not within ${seconds} s: ${what}`);
    await sleep(5);
  }
}

export function isAlive(processId: number): boolean {
  try {
    const stat = readFileSync(`/proc/${processId}/stat`, 'latin1');
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
  } catch {
    return existsSync('/proc') ? false : canSignal(processId);
  }
}

function canSignal(processId: number): boolean {
  try {
    return process.kill(processId, 0);
  } catch {
    return false;
  }
}

/** One test's folder and processes. */
export class Scene implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'lessor-cli-'));
  readonly #leaders: number[] = [];

  constructor() {
    onTestFinished(() => this[Symbol.asyncDispose]()); // also when the test hangs
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  read(name: string): string {
    return existsSync(this.path(name)) ? readFileSync(this.path(name), 'utf8') : '';
  }

  /** When a `STUBBORN` command was first asked to end, in seconds since 1970. NaN when it never was. */
  askedAt(): number {
    return parseFloat(this.read('asked'));
  }

  /** When it was last alive. */
  lastAliveAt(): number {
    return parseFloat(this.read('beat'));
  }

  /** The numbers that a script wrote into the file, one a line. */
  processIds(name: string): number[] {
    return this.read(name).split('\n').filter(Boolean).map(Number);
  }

  /** Starts a shell script that leads a group of its own, in the scene's folder. */
  shell(script: string, env: NodeJS.ProcessEnv = {}): ChildProcess & { readonly pid: number } {
    return this.track(
      spawn('sh', ['-c', script], {
        detached: true,
        stdio: 'ignore',
        cwd: this.folder,
        env: { ...process.env, ...env },
      }),
    );
  }

  /** It is ended with the scene, and so is its whole session where it leads one. */
  track<Child extends ChildProcess>(child: Child): Child & { readonly pid: number } {
    if (child.pid === undefined) throw new Error('The process was not started');
    this.#leaders.push(child.pid);
    return child as Child & { readonly pid: number };
  }

  /** Also that of a command which lessor started. */
  trackLeader(leaderId: number): void {
    this.#leaders.push(leaderId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const leaderId of this.#leaders) {
      killCommand(leaderId);
      if (isAlive(leaderId)) process.kill(leaderId, 'SIGKILL');
    }
    await until('the end of every process of the test', () => this.#leaders.every((leaderId) => !isRunning(leaderId)));
    rmSync(this.folder, { recursive: true, force: true });
  }
}
