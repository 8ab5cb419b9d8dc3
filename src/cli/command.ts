/** The command as a process: what it finds in its environment, how it is started, how it ended. */
import { spawn } from 'node:child_process';
import type { StoredLease } from '../lease.ts';
import { exitCodes, signalExitCode } from './exit-codes.ts';
import { printable, say } from './terminal.ts';

/** What a command needs to know of its lease. */
export type CommandLease = Pick<StoredLease, 'runId' | 'workerId' | 'leaseId' | 'fencingToken' | 'acquisitionId'>;

export interface RunningCommand {
  /** Its process, which leads a session and group of its own. Undefined when it could not be started. */
  readonly leaderId: number | undefined;
  /** Its exit code as a shell would tell it. Never rejects. */
  readonly exitCode: Promise<number>;
}

/** Starts the command with the terminal, or whatever else, that lessor has for input and output. */
export function startCommand([file, ...args]: readonly [string, ...string[]], env: NodeJS.ProcessEnv): RunningCommand {
  try {
    const child = spawn(file, args, { detached: true, stdio: 'inherit', env });
    const exitCode = new Promise<number>((resolve) => {
      child.once('exit', (code, signal) => resolve(signal === null ? (code ?? 0) : signalExitCode(signal)));
      child.once('error', (error) => resolve(failureExitCode(file, error)));
    });
    return { leaderId: child.pid, exitCode };
  } catch (error) {
    return { leaderId: undefined, exitCode: Promise.resolve(failureExitCode(file, error as NodeJS.ErrnoException)) };
  }
}

/** The variables of the command. Those of an outer `lessor run` are overridden, since its lease is another one. */
export function commandEnvironment(lease: CommandLease, storeUrl: string): NodeJS.ProcessEnv {
  return {
    ...process.env,
    LESSOR_RUN_ID: lease.runId,
    LESSOR_WORKER_ID: lease.workerId,
    LESSOR_LEASE_ID: lease.leaseId,
    LESSOR_FENCING_TOKEN: String(lease.fencingToken),
    LESSOR_ACQUISITION_ID: lease.acquisitionId,
    LESSOR_STORE: storeUrl,
  };
}

function failureExitCode(file: string, error: NodeJS.ErrnoException): number {
  const isMissing = error.code === 'ENOENT';
  say(isMissing ? `command not found: ${printable(file)}` : `cannot start ${printable(file)}: ${error.message}`);
  return isMissing ? exitCodes.notFound : exitCodes.notExecutable;
}
