/** The signals that `lessor run` gets: before the command they end the waiting, afterwards they are the command's. */
import { signalGroup } from './process-group.ts';

const FORWARDED = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const;

/** The reason of `SignalRelay.interrupted`. */
export class Interruption extends Error {
  override readonly name = 'Interruption';
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(`Interrupted by ${signal}`);
    this.signal = signal;
  }
}

export class SignalRelay {
  /** Called when Ctrl-Z is about to stop the command and this process. */
  onStop: () => void = () => undefined;
  readonly #interruption = new AbortController();
  readonly #listeners = new Map<NodeJS.Signals, () => void>();
  #leaderId: number | undefined;

  constructor() {
    for (const signal of FORWARDED) this.#listen(signal, () => this.#forward(signal));
    this.#listen('SIGTSTP', () => this.#stop());
    this.#listen('SIGCONT', () => this.#continue());
  }

  /** Aborts, with an `Interruption`, when a signal came before the command was there. */
  get interrupted(): AbortSignal {
    return this.#interruption.signal;
  }

  /** From here on signals are the command's. */
  forwardTo(leaderId: number): void {
    this.#leaderId = leaderId;
  }

  close(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener);
  }

  #listen(signal: NodeJS.Signals, listener: () => void): void {
    this.#listeners.set(signal, listener);
    process.on(signal, listener);
  }

  #forward(signal: NodeJS.Signals): void {
    if (this.#leaderId !== undefined) signalGroup(this.#leaderId, signal);
    else if (signal !== 'SIGWINCH') this.#interruption.abort(new Interruption(signal));
  }

  /**
   * Ctrl-Z. The command is in another session than the terminal's, where a SIGTSTP would be ignored, so it is stopped for
   * certain; then this process stops, so that the shell gets its prompt back.
   */
  #stop(): void {
    if (this.#leaderId !== undefined) {
      this.onStop();
      signalGroup(this.#leaderId, 'SIGSTOP');
    }
    process.kill(process.pid, 'SIGSTOP');
  }

  #continue(): void {
    if (this.#leaderId !== undefined) signalGroup(this.#leaderId, 'SIGCONT');
  }
}
