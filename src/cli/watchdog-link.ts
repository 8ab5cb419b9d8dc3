/** `lessor run`'s side of its watchdog: starts it, tells it of the lease and the command, and lets it go. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { EndingPlan } from './deadline.ts';
import type { WatchdogAnswer, WatchdogMessage } from './watchdog-messages.ts';
import { deadlineIn } from './watchdog-messages.ts';

/** So long the watchdog may take to end when it is let go. */
const GOODBYE_SECONDS = 2;

/** What the watchdog is told of the lease. */
export interface WatchedLease {
  readonly runId: string;
  readonly acquisitionId: string;
  remainingSeconds(): number;
}

export class WatchdogLink {
  /** Called when the watchdog has told the command to end, because nothing was renewed. */
  onTerminated: () => void = () => undefined;
  readonly #file: URL;
  #process: ChildProcess;
  #ready: Promise<void>;
  #lease: WatchedLease | undefined;
  #plan: EndingPlan | undefined;
  #leaderId: number | undefined;
  #ended = false;

  /** Starts the watchdog, which takes some tens of milliseconds: start it first, and await `ready` before the command. */
  constructor(file = new URL('./watchdog.js', import.meta.url)) {
    this.#file = file;
    [this.#process, this.#ready] = this.#start();
  }

  /** The watchdog's process, for whoever looks after it. */
  get processId(): number | undefined {
    return this.#process.pid;
  }

  /** Rejects when the watchdog could not be started. */
  get ready(): Promise<void> {
    return this.#ready;
  }

  /** From here on the watchdog ends whatever command was started under this lease. */
  guard(lease: WatchedLease, plan: EndingPlan): void {
    this.#lease = lease;
    this.#plan = plan;
    const { runId, acquisitionId } = lease;
    this.#tell({ type: 'lease', runId, acquisitionId, plan, deadline: deadlineIn(lease.remainingSeconds()) });
  }

  commandStarted(leaderId: number): void {
    this.#leaderId = leaderId;
    this.#tell({ type: 'command', leaderId });
  }

  renewed(remainingSeconds: number): void {
    this.#tell({ type: 'renewed', deadline: deadlineIn(remainingSeconds) });
  }

  terminated(killInSeconds: number): void {
    this.#tell({ type: 'terminated', deadline: deadlineIn(killInSeconds) });
  }

  /** The command is gone: ends the watchdog, and waits until it has ended. */
  async end(): Promise<void> {
    this.#ended = true;
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exit = once(this.#process, 'exit');
    this.#tell({ type: 'goodbye' });
    // Somebody may have stopped it.
    const kill = setTimeout(() => this.#process.kill('SIGKILL'), GOODBYE_SECONDS * 1000);
    await exit;
    clearTimeout(kill);
  }

  #tell(message: WatchdogMessage): void {
    this.#process.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  #start(): [ChildProcess, Promise<void>] {
    const child = spawn(process.execPath, [fileURLToPath(this.#file)], {
      detached: true, // a session of its own, so that a terminal's signals do not reach it
      stdio: ['pipe', 'pipe', 'inherit'],
      cwd: '/',
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    child.stdin.on('error', () => undefined); // its exit tells
    const ready = new Promise<void>((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (word) => {
        const answer = word as WatchdogAnswer;
        if (answer === 'ready') resolve();
        if (answer === 'terminated') this.onTerminated();
      });
      child.once('error', reject);
      child.once('exit', (code, signal) => reject(new Error(`The watchdog ended at once: ${signal ?? code}`)));
    });
    ready.then(
      () => child.once('exit', () => this.#startAgain()),
      () => undefined, // whoever awaits `ready` hears it
    );
    return [child, ready];
  }

  /** Somebody ended the watchdog: the next one gets to know what this one knew. */
  #startAgain(): void {
    if (this.#ended) return;
    [this.#process, this.#ready] = this.#start();
    if (this.#lease && this.#plan) this.guard(this.#lease, this.#plan);
    if (this.#leaderId !== undefined) this.commandStarted(this.#leaderId);
  }
}
