/** Processes on one SQLite file, so that calls really meet there, and that can be killed in the middle of one. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { OutcomeUnknownError, StoreUnavailableError } from '../../src/errors.ts';
import type { Asked } from './clients.ts';

const PROGRAM = fileURLToPath(new URL('sqlite-process.mjs', import.meta.url));

interface Message {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string; readonly code?: string; readonly reason?: string };
}

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export class SqliteProcess {
  readonly #file: string;
  #process: ChildProcess | undefined;
  #waiting = new Map<number, Waiting>();
  #calls = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** Settles when it has the file open. */
  async start(): Promise<void> {
    const child = fork(PROGRAM, [this.#file]);
    const waiting = new Map<number, Waiting>();
    const ready = new Promise((resolve, reject) => waiting.set(0, { resolve, reject }));
    child.on('message', (message) => answer(waiting, message as Message));
    child.on('exit', () => {
      const gone = new OutcomeUnknownError('The process has ended before it answered');
      for (const { reject } of waiting.values()) reject(gone);
    });
    await ready;
    this.#waiting = waiting;
    this.#process = child;
  }

  /** Ends it as a crash would, with the calls that it is at. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined) return;
    this.#process = undefined;
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }

  store(): Asked {
    const ask =
      <Method extends keyof Asked>(method: Method) =>
      (...args: readonly unknown[]) =>
        this.#ask(method, args) as ReturnType<Asked[Method]>;
    return {
      acquire: (request) => ask('acquire')(request),
      renew: (leases, ttlSeconds) => ask('renew')(leases, ttlSeconds),
      release: (lease) => ask('release')(lease),
      revoke: (runId, why) => ask('revoke')(runId, why),
      read: (runId) => ask('read')(runId),
      currentFence: (runId) => ask('currentFence')(runId),
      openDocuments: (request) => ask('openDocuments')(request),
      commitDocuments: (request) => ask('commitDocuments')(request),
    };
  }

  #ask(method: string, args: readonly unknown[]): Promise<unknown> {
    const child = this.#process;
    if (child === undefined) return Promise.reject(new StoreUnavailableError('The process was killed'));
    this.#calls += 1;
    const id = this.#calls;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      child.send({ id, method, args }, (error) => error && reject(new OutcomeUnknownError('The process is gone')));
    });
  }
}

function answer(waiting: Map<number, Waiting>, { id, result, error }: Message): void {
  const { resolve, reject } = waiting.get(id)!;
  waiting.delete(id);
  if (error === undefined) return resolve(result);
  // As an error of another copy of the package, which it is.
  reject(Object.assign(new Error(error.message), { [Symbol.for('lessor.LeaseError')]: true }, error));
}
