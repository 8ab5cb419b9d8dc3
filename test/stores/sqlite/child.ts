/** Real processes on one file: each a child that obeys over its channel, and that does not outlive its test. */
import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach } from 'vitest';
import type { DriverName } from './files.ts';

const PROGRAM = fileURLToPath(new URL('child.mjs', import.meta.url));

const running = new Set<Child>();

afterEach(async () => {
  await Promise.all([...running].map((child) => child.kill()));
});

interface Message {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: string;
  readonly event?: string;
  readonly fencingToken?: number;
}

/** Emits what the child tells by itself, by the name of the event. */
export class Child extends EventEmitter {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, (message: Message) => void>();
  #calls = 0;

  constructor(driver: DriverName, file: string) {
    super();
    this.#process = fork(PROGRAM, [driver, file]);
    this.#process.on('message', (message: Message) => {
      if (message.event !== undefined) this.emit(message.event, message);
      if (message.id !== undefined) this.#waiting.get(message.id)?.(message);
    });
    this.#process.on('exit', () => this.emit('gone'));
    running.add(this);
  }

  /** What the command returns in the child. Never settles when the child dies first. */
  async ask<Result>(command: string, ...args: readonly unknown[]): Promise<Result> {
    this.#calls += 1;
    const id = this.#calls;
    const answer = new Promise<Message>((resolve) => this.#waiting.set(id, resolve));
    this.#process.send({ id, command, args });
    const { result, error } = await answer;
    if (error !== undefined) throw new Error(error);
    return result as Result;
  }

  /** Ends it as a crash would, and waits until it is gone. */
  async kill(): Promise<void> {
    running.delete(this);
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const gone = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await gone;
  }
}

/** A child that has the file open. */
export async function startChild(driver: DriverName, file: string): Promise<Child> {
  const child = new Child(driver, file);
  const gone = new AbortController();
  child.once('gone', () => gone.abort(new Error('A child ended before it was ready')));
  await once(child, 'ready', { signal: gone.signal });
  return child;
}
