/** The worker processes: started, given jobs, replaced when they die. The machine runs it as an actor. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fromCallback } from 'xstate';

const END_SECONDS = 5;

export class Crew {
  #args;
  #count;
  #started = 0;
  /** So many workers are still to stop themselves. */
  #stalls;
  #ended = false;
  #tell = () => {};
  /** By worker id: its process, its job, and whether it is stopped. */
  #workers = new Map();

  constructor({ count, stalls, url, ttlSeconds, workSeconds }) {
    this.#count = count;
    this.#stalls = stalls;
    this.#args = [url, ttlSeconds, workSeconds].map(String);
  }

  get logic() {
    return fromCallback(({ sendBack, receive }) => {
      this.#tell = sendBack;
      for (let index = 0; index < this.#count; index += 1) this.#start();
      receive((event) => (event.type === 'assign' ? this.#assign(event) : this.wakeAll()));
      return () => (this.#tell = () => {});
    });
  }

  /** Workers that have a job and are not stopped. */
  get busy() {
    return this.#having(({ jobId, isStopped }) => jobId !== undefined && !isStopped);
  }

  get stopped() {
    return this.#having(({ isStopped }) => isStopped);
  }

  jobOf(workerId) {
    return this.#workers.get(workerId)?.jobId;
  }

  kill(workerId) {
    this.#workers.get(workerId)?.process.kill('SIGKILL');
  }

  stop(workerId) {
    this.#signal(workerId, 'SIGSTOP', true);
  }

  wake(workerId) {
    this.#signal(workerId, 'SIGCONT', false);
  }

  wakeAll() {
    for (const workerId of this.stopped) this.wake(workerId);
  }

  /** Lets every worker finish, and ends those that do not. */
  async end() {
    this.#ended = true;
    this.wakeAll();
    const timer = setTimeout(() => this.#workers.forEach((_, workerId) => this.kill(workerId)), END_SECONDS * 1000);
    await Promise.all(
      [...this.#workers.values()].map(({ process }) => {
        if (process.connected) process.disconnect();
        return once(process, 'exit');
      }),
    );
    clearTimeout(timer);
  }

  /** A new process is a new worker: with the name of a dead one it would get that one's lease extended. */
  #start() {
    this.#started += 1;
    const workerId = `worker-${this.#started}`;
    const process = fork(new URL('worker.js', import.meta.url), [workerId, ...this.#args]);
    const worker = { process, jobId: undefined, isStopped: false };
    this.#workers.set(workerId, worker);
    process.on('message', (event) => {
      if (event.type === 'worker.idle') worker.jobId = undefined;
      this.#tell(event);
    });
    process.once('exit', () => {
      this.#workers.delete(workerId);
      if (this.#ended) return;
      this.#tell({ type: 'worker.gone', workerId, jobId: worker.jobId });
      this.#start();
    });
  }

  #assign({ workerId, jobId }) {
    const worker = this.#workers.get(workerId);
    if (worker === undefined) return;
    worker.jobId = jobId;
    const stalls = this.#stalls > 0;
    if (stalls) {
      this.#stalls -= 1;
      worker.isStopped = true;
    }
    // When it dies at this very moment, its exit tells.
    worker.process.send({ jobId, stalls }, () => {});
  }

  #signal(workerId, signal, isStopped) {
    const worker = this.#workers.get(workerId);
    if (worker?.process.kill(signal)) worker.isStopped = isStopped;
  }

  #having(condition) {
    return [...this.#workers].filter(([, worker]) => condition(worker)).map(([workerId]) => workerId);
  }
}
