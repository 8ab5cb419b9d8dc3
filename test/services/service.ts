/**
 * Servers that tests start for themselves: on loopback, with a data folder of their own under the system's temporary
 * folder, ended by pid, and ended too when the test process dies.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { accessSync, chownSync, constants, mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

export interface ServiceCommand {
  /** What messages call it. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Removed once the server has ended. */
  readonly folder: string;
  /** Whom the server runs as. Left out: as whoever runs the tests. */
  readonly user?: SystemUser | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** What ends it promptly and in order. @default 'SIGTERM' */
  readonly endSignal?: NodeJS.Signals | undefined;
}

export interface Service {
  readonly pid: number;
  /** Settles when the server has ended, however it did. */
  readonly ended: Promise<void>;
  hasEnded(): boolean;
  /** What it has printed so far: the last 64 KB. */
  output(): string;
  signal(signal: NodeJS.Signals): void;
  /** Ends it by signal and waits. The data folder stays. Idempotent. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts the server, and a watchdog that ends it and removes its folder when this process dies first. */
export function startService(service: ServiceCommand): Service {
  const { name, command, args, folder, user, env, endSignal = 'SIGTERM' } = service;
  const server = spawn(command, args, {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    ...user,
  });
  const { pid } = server;
  let failure: Error | undefined;
  const ended = new Promise<void>((resolve) => {
    server.once('exit', () => resolve());
    server.once('error', (error) => {
      failure = error;
      resolve();
    });
  });
  const output = collectOutput(server);
  if (pid === undefined) throw new Error(`${name} could not be started: ${command}`, { cause: failure });

  const watchdog = startWatchdog(pid, endSignal, folder);
  void ended.then(() => watchdog.stdin?.end('ended\n'));
  server.unref();
  const hasEnded = (): boolean => failure !== undefined || server.exitCode !== null || server.signalCode !== null;
  const signal = (which: NodeJS.Signals): void => void (hasEnded() || server.kill(which));
  return {
    pid,
    ended,
    hasEnded,
    output,
    signal,
    stop: async (which = endSignal) => {
      server.ref();
      signal(which);
      const impatience = setTimeout(() => signal('SIGKILL'), 30_000);
      await ended;
      clearTimeout(impatience);
    },
  };
}

/** Its input ends with this process: by `ended` when the server went first, without a word when this process did. */
function startWatchdog(pid: number, endSignal: NodeJS.Signals, folder: string): ChildProcess {
  const script = 'read said || { kill -s "$2" "$1"; sleep 2; kill -s KILL "$1"; sleep 0.2; rm -rf -- "$3"; }';
  const watchdog = spawn('/bin/sh', ['-c', script, 'watchdog', String(pid), endSignal.slice(3), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watchdog.on('error', () => {});
  watchdog.stdin?.on('error', () => {});
  watchdog.unref();
  // The pipe must not keep the tests alive. It is a socket, though typed as a plain stream.
  (watchdog.stdin as unknown as { unref(): void }).unref();
  return watchdog;
}

function collectOutput(server: ChildProcess): () => string {
  let text = '';
  for (const stream of [server.stdout, server.stderr]) {
    stream?.on('data', (chunk: Buffer) => (text = (text + chunk.toString()).slice(-65_536)));
    (stream as unknown as { unref(): void } | null)?.unref();
  }
  return () => text;
}

/** Asks until the answer is yes, and fails loudly with what the server printed when it ends first or takes too long. */
export async function untilReady(name: string, service: Service, isReady: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!(await isReady().catch(() => false))) {
    if (service.hasEnded() || performance.now() > deadline) {
      throw new Error(
        `${name} ${service.hasEnded() ? 'ended at once' : 'did not answer in 60 s'}. It said:\n${service.output()}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The first executable of that name on the PATH, then in the folders. */
export function findBinary(name: string, folders: readonly string[] = []): string | null {
  for (const folder of [...(process.env['PATH'] ?? '').split(delimiter), ...folders]) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this folder.
    }
  }
  return null;
}

/** A port of 127.0.0.1 that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
}

/** Root's stand-in for servers that refuse to run as root. Undefined when the tests do not run as root. */
export function unprivilegedUser(...names: readonly string[]): SystemUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of [...names, 'nobody']) {
    const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error('Expected a system user other than root, such as `nobody`, in /etc/passwd');
}

/** A new folder of the system's temporary one, of that user. */
export function makeFolder(name: string, user?: SystemUser): string {
  const folder = mkdtempSync(join(tmpdir(), `lessor-${name}-`));
  if (user) chownSync(folder, user.uid, user.gid);
  return folder;
}

export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** Tells that a server cannot be had: a printed line and skipped tests on a laptop, a failure where `CI` is set. */
export function reportAbsent(name: string, why: string): null {
  if (process.env['CI']) throw new Error(`${name} is needed for the tests in CI: ${why}`);
  console.warn(`skipped: tests on ${name} (${why})`);
  return null;
}
