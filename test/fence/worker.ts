/** Workers as processes, which can be stopped and continued as a machine under load would. */
import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { StoredLease } from '../../src/index.ts';
import { afterEach } from 'vitest';

const PROGRAM = fileURLToPath(new URL('worker.mjs', import.meta.url));

const running = new Set<Worker>();

afterEach(async () => {
  await Promise.all([...running].map((worker) => worker.kill()));
});

/** The ways in which a worker writes under its lease. */
export type Way = 'session' | 'transaction' | 'begun' | 'fenced' | 'table' | 'exec' | 'function' | 'queued';

interface Message {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: object;
  readonly event?: string;
}

export class Worker extends EventEmitter {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, (message: Message) => void>();
  #calls = 0;

  constructor(url: string) {
    super();
    this.#process = fork(PROGRAM, [url]);
    this.#process.on('message', (message: Message) => {
      if (message.event !== undefined) this.emit(message.event);
      if (message.id !== undefined) this.#waiting.get(message.id)?.(message);
    });
    this.#process.on('exit', () => this.emit('gone'));
    running.add(this);
  }

  /** Null when the run is held. */
  async acquire(runId: string, workerId: string, ttlSeconds: number): Promise<StoredLease | null> {
    return (await this.#ask('acquire', [runId, workerId, ttlSeconds])) as StoredLease | null;
  }

  /** Writes the status, and resolves to what was read before. Rejects with the facts of the error. */
  write(way: Way, lease: StoredLease, status: string): Promise<unknown> {
    return this.#ask(way, [lease, status, false]);
  }

  /** Checks all that is to be checked, and stops as a whole before it writes. */
  async stopBeforeWriting(way: Way, lease: StoredLease, status: string): Promise<Stopped> {
    const checked = once(this, 'checked');
    const written = this.#ask(way, [lease, status, true]).then(
      (result) => ({ result }),
      (error: unknown) => ({ error }),
    );
    await Promise.race([checked, written.then((early) => Promise.reject(new Error(JSON.stringify(early))))]);
    this.#process.kill('SIGSTOP');
    this.#process.send({ command: 'go' });
    return {
      continue: () => {
        this.#process.kill('SIGCONT');
        return written;
      },
    };
  }

  /** Ends it as a crash would, and waits until it is gone. */
  async kill(): Promise<void> {
    running.delete(this);
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const gone = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await gone;
  }

  async #ask(command: string, args: readonly unknown[]): Promise<unknown> {
    this.#calls += 1;
    const id = this.#calls;
    const answer = new Promise<Message>((resolve) => this.#waiting.set(id, resolve));
    this.#process.send({ id, command, args });
    const { result, error } = await answer;
    if (error !== undefined) throw Object.assign(new Error(), error);
    return result;
  }
}

export interface Stopped {
  /** Lets the worker go on, and tells what became of its write. */
  continue(): Promise<{ readonly result?: unknown; readonly error?: unknown }>;
}

export async function startWorker(url: string): Promise<Worker> {
  const worker = new Worker(url);
  const gone = new AbortController();
  worker.once('gone', () => gone.abort(new Error('A worker ended before it was ready')));
  await once(worker, 'ready', { signal: gone.signal });
  return worker;
}
