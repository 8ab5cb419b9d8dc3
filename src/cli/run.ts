/** `lessor run RUN -- COMMAND`: acquires the run, runs the command under its lease, releases the run. */
import type { HeldLease } from '../manager/held-lease.ts';
import type { ManagerEvents } from '../manager/manager-events.ts';
import type { LeaseManager } from '../manager/lease-manager.ts';
import type { LeaseStore } from '../stores/store.ts';
import { acquireRun } from './acquire-run.ts';
import type { RunInvocation } from './arguments.ts';
import { commandEnvironment, startCommand } from './command.ts';
import { defaultGraceSeconds, endingPlan } from './deadline.ts';
import { exitCodes, signalExitCode } from './exit-codes.ts';
import { endCommand } from './process-group.ts';
import { Interruption, SignalRelay } from './signals.ts';
import { Supervision } from './supervision.ts';
import { duration, printable, say } from './terminal.ts';
import { UsageError } from './usage.ts';
import { WatchdogLink } from './watchdog-link.ts';

/** What the command left running has this long to end, before it is killed. */
const LEFTOVER_GRACE_SECONDS = 1;
/** A killed process that does not go away, in a system call that cannot be interrupted, is waited for this long. */
const KILLED_PATIENCE_SECONDS = 5;

interface Session {
  readonly invocation: RunInvocation;
  readonly storeUrl: string;
  readonly leases: LeaseManager;
  readonly signals: SignalRelay;
  readonly watchdog: WatchdogLink;
}

/** @param open - opens the store. Called after the watchdog was started, so that both load at once. */
export async function run(
  invocation: RunInvocation,
  storeUrl: string,
  open: (url: string) => Promise<LeaseStore>,
): Promise<number> {
  if (process.platform === 'win32') throw new UsageError('run', 'Expected a system with process groups: use WSL here');
  const signals = new SignalRelay();
  const watchdog = new WatchdogLink();
  try {
    await using store = await open(storeUrl);
    const { LeaseManager } = await import('../manager/lease-manager.ts');
    await using leases = new LeaseManager(store, { ttlSeconds: invocation.ttlSeconds });
    return await runUnder({ invocation, storeUrl, leases, signals, watchdog });
  } catch (error) {
    if (error instanceof Interruption) return signalExitCode(error.signal);
    throw error;
  } finally {
    signals.close();
    await watchdog.end();
  }
}

async function runUnder(session: Session): Promise<number> {
  const { invocation, leases, signals, watchdog } = session;
  const lease = await acquireRun(leases, invocation, signals.interrupted);
  if (lease === null) return exitCodes.held;
  let isGone = true;
  try {
    await watchdog.ready;
    signals.interrupted.throwIfAborted();
    const command = await superviseCommand(session, lease);
    isGone = command.isGone;
    return command.exitCode;
  } finally {
    if (isGone) await releaseRun(lease);
    // What cannot be killed may still write: the lease is left to expire, and the watchdog goes on trying.
    else process.exit(exitCodes.lost);
  }
}

async function superviseCommand(session: Session, lease: HeldLease): Promise<{ exitCode: number; isGone: boolean }> {
  const { invocation, storeUrl, leases, signals, watchdog } = session;
  const { ttlSeconds, graceSeconds = defaultGraceSeconds(ttlSeconds) } = invocation;
  const plan = endingPlan(ttlSeconds, graceSeconds);
  watchdog.guard(lease, plan);
  const command = startCommand(invocation.command, commandEnvironment(lease, storeUrl));
  const { leaderId } = command;
  if (leaderId === undefined) return { exitCode: await command.exitCode, isGone: true };
  watchdog.commandStarted(leaderId);
  signals.forwardTo(leaderId);
  signals.onStop = () => say(`stopped: continue within ${duration(lease.remainingSeconds())}, or the command is ended`);
  const stopListening = leases.on('renewed', () => watchdog.renewed(lease.remainingSeconds()));
  const stopWarning = leases.on('uncertain', warn);
  const supervision = new Supervision({
    lease,
    plan,
    leaderId,
    onTerminated: (why, killInSeconds) => {
      say(`${why}: ending the command`);
      watchdog.terminated(killInSeconds);
    },
  });
  watchdog.onTerminated = () => supervision.terminatedByWatchdog();
  const exitCode = await command.exitCode;
  const isGone = await endCommand(leaderId, LEFTOVER_GRACE_SECONDS, KILLED_PATIENCE_SECONDS);
  if (!isGone) say(`a process of the command cannot be killed: run ${printable(lease.runId)} is not released`);
  const { lost } = supervision;
  supervision.stop();
  stopListening();
  stopWarning();
  return { exitCode: lost ? exitCodes.lost : exitCode, isGone };
}

/** Once for each time that the store goes away. */
function warn({ lease, error, failures, leftSeconds }: ManagerEvents['uncertain']): void {
  if (failures > 1) return;
  const why = error instanceof Error ? error.message : String(error);
  say(`the lease of run ${printable(lease.runId)} was not renewed (${why}); ${duration(leftSeconds)} left to do so`);
}

async function releaseRun(lease: HeldLease): Promise<void> {
  try {
    await lease.release();
  } catch (error) {
    const { runId } = lease;
    say(`could not release run ${printable(runId)}, it is free once its lease expires: ${(error as Error).message}`);
  }
}
