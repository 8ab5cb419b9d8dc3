/**
 * The watchdog: a small process beside each `lessor run`, in a session of its own. It ends the command when the pipe to
 * `lessor run` closes without a goodbye (killed), and before the lease runs out when no renewal is told (frozen). So the
 * command is gone before another worker can have the run. It asks no store and loads nothing but Node.
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { EndingPlan } from './deadline.ts';
import { endingAt } from './deadline.ts';
import { findCommand, isRunning, killCommand, terminateCommand } from './process-group.ts';
import type { SharedDeadline, WatchdogAnswer, WatchdogMessage } from './watchdog-messages.ts';
import { deadlineIn, secondsUntil } from './watchdog-messages.ts';

/** A timer stands still while the machine is suspended: look at the clocks at least this often. */
const LOOK_SECONDS = 1;
const LOOK_SECONDS_WHILE_ENDING = 0.02;
/** So long a command may stay invisible that was being started when `lessor run` died. */
const SEARCH_SECONDS = 0.5;
/** `lessor run` sends the SIGTERM itself when it can, and says so. The watchdog does it this much of the grace later. */
const SHARE_OF_GRACE = 0.75;

class Watch {
  readonly #runId: string;
  readonly #acquisitionId: string;
  readonly #plan: EndingPlan;
  #deadline: SharedDeadline;
  #leaderId: number | undefined;
  #terminated = false;
  #orphaned = false;
  /** When to give up looking for a command that `lessor run` was about to start. */
  #searchUntil: SharedDeadline | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(lease: Extract<WatchdogMessage, { type: 'lease' }>) {
    this.#runId = lease.runId;
    this.#acquisitionId = lease.acquisitionId;
    this.#plan = { ...lease.plan, graceSeconds: lease.plan.graceSeconds * SHARE_OF_GRACE };
    this.#deadline = lease.deadline;
  }

  take(message: WatchdogMessage): void {
    if (message.type === 'command') this.#leaderId = message.leaderId;
    if (message.type === 'terminated') this.#terminated = true;
    // The last word stands: once told to end, the command gets no more time.
    if (message.type === 'terminated' || (message.type === 'renewed' && !this.#terminated)) {
      this.#deadline = message.deadline;
    }
    this.#look();
  }

  /** `lessor run` has died. The command has the grace to end, or what is left of the lease. */
  orphan(): void {
    this.#orphaned = true;
    const graceSeconds = this.#plan.graceSeconds + this.#plan.reserveSeconds;
    if (secondsUntil(this.#deadline) > graceSeconds) this.#deadline = deadlineIn(graceSeconds);
    this.#searchUntil = deadlineIn(SEARCH_SECONDS);
    this.#look();
  }

  #look(): void {
    clearTimeout(this.#timer);
    const { step, nextInSeconds } = endingAt(secondsUntil(this.#deadline), this.#plan);
    if (step !== 'none') this.#leaderId ??= findCommand(this.#acquisitionId);
    if (step !== 'none' && this.#leaderId !== undefined) this.#end(this.#leaderId, step);
    if (this.#isOver()) process.exit(0);
    const longest = step === 'none' ? LOOK_SECONDS : LOOK_SECONDS_WHILE_ENDING;
    this.#timer = setTimeout(() => this.#look(), Math.min(nextInSeconds || longest, longest) * 1000);
  }

  #end(leaderId: number, step: 'terminate' | 'kill'): void {
    if (!this.#terminated) {
      if (!isRunning(leaderId)) return;
      this.#terminated = true;
      terminateCommand(leaderId);
      answer('terminated');
      const why = this.#orphaned ? 'lessor run has died' : 'lessor run does not renew its lease';
      say(`${why}: ending the command of run ${JSON.stringify(this.#runId)}`);
    }
    if (step === 'kill') killCommand(leaderId);
  }

  #isOver(): boolean {
    if (!this.#orphaned) return false;
    if (this.#leaderId !== undefined) return !isRunning(this.#leaderId);
    return this.#searchUntil !== undefined && secondsUntil(this.#searchUntil) <= 0;
  }
}

let watch: Watch | undefined;

function take(message: WatchdogMessage): void {
  if (message.type === 'goodbye') process.exit(0);
  if (message.type === 'lease') watch = new Watch(message);
  else watch?.take(message);
}

function answer(word: WatchdogAnswer): void {
  write(1, `${word}\n`);
}

function say(text: string): void {
  write(2, `lessor: ${text}\n`);
}

function write(descriptor: number, text: string): void {
  try {
    writeSync(descriptor, text);
  } catch {
    // Nobody reads it any more.
  }
}

process.title = 'lessor watchdog';
// It ends with `lessor run` and the command, not before them.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const) process.on(signal, () => undefined);
createInterface({ input: process.stdin })
  .on('line', (line) => take(JSON.parse(line) as WatchdogMessage))
  .on('close', () => (watch ? watch.orphan() : process.exit(0)));
answer('ready');
