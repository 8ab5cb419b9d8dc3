/**
 * The processes of a command. The command leads a session and process group of its own; whatever it starts is in that
 * group, or, after a shell's job control, in another group of the session. Linux tells the members of a session, so there
 * all of them are reached; elsewhere the group. A process that makes a session of its own has left.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_SECONDS = 0.01;

/** Sends the signal to the command's group, as a terminal would. */
export function signalGroup(leaderId: number, signal: NodeJS.Signals): void {
  send(-leaderId, signal);
}

/** Asks every process of the command to end. Stopped ones are continued, or they could not hear it. */
export function terminateCommand(leaderId: number): void {
  signalAll(leaderId, 'SIGTERM');
  signalAll(leaderId, 'SIGCONT');
}

/** Kills every process of the command. */
export function killCommand(leaderId: number): void {
  signalAll(leaderId, 'SIGKILL');
}

/** Whether a process of the command still runs. One that ended and was not collected by its parent does not. */
export function isRunning(leaderId: number): boolean {
  const members = sessionMembers(leaderId);
  return members ? members.length > 0 : send(-leaderId, 0);
}

/** Ends what is left of a command: asks first, kills after the grace. Tells whether all of it is gone. */
export async function endCommand(leaderId: number, graceSeconds: number, patienceSeconds: number): Promise<boolean> {
  if (!isRunning(leaderId)) return true;
  terminateCommand(leaderId);
  if (await isGoneWithin(leaderId, graceSeconds)) return true;
  killCommand(leaderId);
  return isGoneWithin(leaderId, patienceSeconds);
}

/**
 * The leader of the command that was started with this acquisition's id in its environment, where the system tells. For
 * whoever must end a command and was not told its number, because `lessor run` died in the moment of starting it.
 */
export function findCommand(acquisitionId: string): number | undefined {
  const mark = `LESSOR_ACQUISITION_ID=${acquisitionId}\0`;
  const found = listProcesses().find((name) => readProcessFile(name, 'environ')?.includes(mark));
  return found === undefined ? undefined : readStat(found)?.sessionId;
}

async function isGoneWithin(leaderId: number, seconds: number): Promise<boolean> {
  const start = performance.now();
  while (isRunning(leaderId)) {
    if (performance.now() - start >= seconds * 1000) return false;
    await sleep(POLL_SECONDS * 1000);
  }
  return true;
}

function signalAll(leaderId: number, signal: NodeJS.Signals): void {
  send(-leaderId, signal);
  for (const { processId, groupId } of sessionMembers(leaderId) ?? []) {
    if (groupId !== leaderId) send(processId, signal);
  }
}

/** False when there is nobody to send it to. */
function send(target: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(target, signal);
  } catch {
    return false; // gone, or another user's
  }
}

interface Member {
  readonly processId: number;
  readonly groupId: number;
}

/** Who of the session still runs, or null where the system does not tell. */
function sessionMembers(sessionId: number): Member[] | null {
  const names = listProcesses();
  if (names.length === 0) return null;
  const members: Member[] = [];
  for (const name of names) {
    const fields = readStat(name);
    if (fields === null || fields.sessionId !== sessionId || fields.ended) continue;
    members.push({ processId: Number(name), groupId: fields.groupId });
  }
  return members;
}

/** None where the system is not Linux, or does not show them. */
function listProcesses(): string[] {
  if (process.platform !== 'linux') return [];
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

/** `/proc/N/stat`: `N (any name) state parent group session ...`. The name may hold blanks and parentheses. */
function readStat(processId: string): { ended: boolean; groupId: number; sessionId: number } | null {
  const stat = readProcessFile(processId, 'stat');
  if (stat === null) return null;
  const [state, , groupId, sessionId] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { ended: state === 'Z' || state === 'X', groupId: Number(groupId), sessionId: Number(sessionId) };
}

/** Null when the process has ended meanwhile, or is another user's. */
function readProcessFile(processId: string, file: 'stat' | 'environ'): string | null {
  try {
    return readFileSync(`/proc/${processId}/${file}`, 'latin1');
  } catch {
    return null;
  }
}
