/** `lessor watch RUN...`: what happens to runs, line by line, until it is told to end. */
import { isLeaseError } from '../errors.ts';
import type { LeaseRecord, LeaseStore } from '../stores/store.ts';
import type { WatchInvocation } from './arguments.ts';
import { exitCodes } from './exit-codes.ts';
import { LineWriter } from './output.ts';
import { moment, printable, say } from './terminal.ts';
import type { RunStep } from './watch-steps.ts';
import { firstSight, stepsBetween } from './watch-steps.ts';

/** Between two looks at a run, in seconds: a hint of the store may be lost, and not every store gives any. */
const POLL_SECONDS = { pushing: 5, silent: 1 } as const;
const SHORTEST_PAUSE_SECONDS = 0.02;

/** Ends with `ok` at the first SIGINT or SIGTERM. A store that does not answer for a while is told of once. */
export async function watch(store: LeaseStore, invocation: WatchInvocation): Promise<number> {
  const ending = new AbortController();
  const end = () => ending.abort();
  process.once('SIGINT', end).once('SIGTERM', end);
  try {
    await new Watch(store, invocation, ending.signal).follow();
  } finally {
    ending.abort();
    process.off('SIGINT', end).off('SIGTERM', end);
  }
  return exitCodes.ok;
}

/** A run as it was at its latest look. */
interface Seen {
  readonly record: LeaseRecord | null;
  /** When it wants the next one, in seconds on the monotonic clock. */
  readonly dueAt: number;
}

class Watch {
  readonly #store: LeaseStore;
  readonly #invocation: WatchInvocation;
  readonly #signal: AbortSignal;
  readonly #writer = new LineWriter();
  readonly #seen = new Map<string, Seen>();
  readonly #hinted = new Set<string>();
  #wake: () => void = () => undefined;
  #pollSeconds: number;
  #isUnavailable = false;

  constructor(store: LeaseStore, invocation: WatchInvocation, signal: AbortSignal) {
    this.#store = store;
    this.#invocation = invocation;
    this.#signal = signal;
    this.#pollSeconds = store.changes === undefined ? POLL_SECONDS.silent : POLL_SECONDS.pushing;
  }

  async follow(): Promise<void> {
    void this.#listen();
    while (!this.#signal.aborted) {
      await this.#look();
      await this.#pause(this.#secondsUntilDue());
    }
  }

  /** A store that cannot push, or stops doing so, leaves the polls. */
  async #listen(): Promise<void> {
    try {
      const changes = this.#store.changes?.(this.#invocation.runIds, { signal: this.#signal }) ?? [];
      for await (const { runId } of changes) {
        this.#hinted.add(runId);
        this.#wake();
      }
    } catch {
      // The polls go on.
    }
    this.#pollSeconds = POLL_SECONDS.silent;
  }

  async #look(): Promise<void> {
    const due = this.#invocation.runIds.filter((runId) => this.#hinted.delete(runId) || this.#dueAt(runId) <= now());
    try {
      for (const runId of due) await this.#lookAt(runId);
      if (this.#isUnavailable) say('the store answers again');
      this.#isUnavailable = false;
    } catch (error) {
      this.#endure(error);
    }
    await this.#writer.flush();
  }

  async #lookAt(runId: string): Promise<void> {
    const record = await this.#store.read(runId, { signal: this.#signal });
    const before = this.#seen.get(runId);
    const lapsesInSeconds = record?.state === 'held' ? record.remainingSeconds : Infinity;
    this.#seen.set(runId, { record, dueAt: now() + Math.min(this.#pollSeconds, lapsesInSeconds) });
    const noticedAt = Date.now() / 1000;
    const steps = before ? stepsBetween(before.record, record, noticedAt) : [firstSight(runId, record, noticedAt)];
    for (const step of steps) await this.#writer.line(this.#invocation.json ? jsonOf(step) : this.#textOf(step));
  }

  /** What may pass is told once and waited for; anything else ends the command. */
  #endure(error: unknown): void {
    if (this.#signal.aborted) return;
    if (!isLeaseError(error) || !error.retryable) throw error;
    if (!this.#isUnavailable) say(`${error.message}. Asking on`);
    this.#isUnavailable = true;
  }

  #dueAt(runId: string): number {
    return this.#seen.get(runId)?.dueAt ?? -Infinity;
  }

  #secondsUntilDue(): number {
    if (this.#isUnavailable) return POLL_SECONDS.silent;
    const dueAt = Math.min(...this.#invocation.runIds.map((runId) => this.#dueAt(runId)));
    return Math.max(SHORTEST_PAUSE_SECONDS, dueAt - now());
  }

  /** Ends early with a hint, unless the store is not there, and with the signal. */
  #pause(seconds: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#signal.removeEventListener('abort', done);
        this.#wake = () => undefined;
        resolve();
      };
      const timer = setTimeout(done, seconds * 1000);
      this.#signal.addEventListener('abort', done);
      if (!this.#isUnavailable) this.#wake = done;
      if (this.#signal.aborted || (this.#hinted.size > 0 && !this.#isUnavailable)) done();
    });
  }

  #textOf({ at, runId, what, record }: RunStep): string {
    const width = Math.max(...this.#invocation.runIds.map((name) => printable(name).length));
    const start = [moment(at), printable(runId).padEnd(width)];
    if (record === null) return [...start, WORDS[what]].join('  ');
    const who = [printable(record.workerId), `token ${record.fencingToken}`];
    return [...start, WORDS[what].padEnd(WIDEST_WORD), ...who, ...why(record, what)].join('  ');
  }
}

const WORDS: Readonly<Record<RunStep['what'], string>> = {
  neverLeased: 'never leased',
  free: 'free',
  held: 'held',
  expired: 'expired',
  granted: 'granted',
  takenOver: 'taken over',
  released: 'released',
  revoked: 'revoked',
  forgotten: 'forgotten by the store',
};
const WIDEST_WORD = WORDS.takenOver.length;

function why({ revoked }: LeaseRecord, what: RunStep['what']): readonly string[] {
  return what === 'revoked' && revoked ? [`by ${printable(revoked.by)}: ${printable(revoked.reason)}`] : [];
}

function now(): number {
  return performance.now() / 1000;
}

function jsonOf({ at, runId, what, record }: RunStep): string {
  return JSON.stringify({ at, runId, what, ...record });
}
