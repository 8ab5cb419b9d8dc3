/** `lessor` as users run it: the built command, in a process of its own, with a SQLite file of the scene's. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Scene } from './commands.ts';
import { LESSOR } from './commands.ts';

export interface Outcome {
  /** As a shell would tell it. */
  readonly code: number | NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class Lessor {
  readonly process: ChildProcess & { readonly pid: number };
  /** When it has ended, with all that it said. */
  readonly ended: Promise<Outcome>;
  stdout = '';
  stderr = '';

  constructor(scene: Scene, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const child = spawn(process.execPath, [LESSOR, ...args], {
      cwd: scene.folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...environment(), LESSOR_STORE: `sqlite:${scene.path('leases.db')}`, ...env },
    });
    child.stdout.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    // The watchdog shares stderr, so its end tells that the watchdog has ended too.
    this.ended = once(child, 'close').then(([code, signal]: unknown[]) => ({
      code: (signal ?? code) as Outcome['code'],
      stdout: this.stdout,
      stderr: this.stderr,
    }));
    this.process = scene.track(child);
  }

  kill(signal: NodeJS.Signals): void {
    process.kill(this.process.pid, signal);
  }
}

/** Runs it to its end. */
export async function lessor(scene: Scene, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  return new Lessor(scene, args, env).ended;
}

/** The record of a run, as `show --json` tells it. */
export async function showRun(scene: Scene, runId: string): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await lessor(scene, ['show', runId, '--json']);
  if (code !== 0) throw new Error(`show ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as Record<string, unknown>;
}

/** That of the tests, without what tells them apart from one another. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('LESSOR_')));
}
