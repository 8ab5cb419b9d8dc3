/** Redis servers of the tests' own: found on the PATH, or installed by apt-get. */
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { findLibfaketime } from './faketime.ts';
import { aptInstall } from './apt.ts';
import {
  findBinary,
  freePort,
  makeFolder,
  removeFolder,
  reportAbsent,
  startService,
  untilReady,
  type Service,
} from './service.ts';

export interface RedisOptions {
  /** Whether it keeps its data over a restart and a kill, synced at every write. @default false */
  readonly appendonly?: boolean | undefined;
  /** Any other setting of redis.conf. */
  readonly config?: Readonly<Record<string, string>> | undefined;
  /** The primary that it follows, or a proxy before it. */
  readonly replicaOf?: { readonly port: number } | undefined;
  /** Makes `setClock` possible, by libfaketime. */
  readonly steppableClock?: boolean | undefined;
}

export interface Redis {
  /** Stays the same over restarts. */
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  readonly pid: number;
  /** Sends one command on a connection of its own. Integers come as numbers, an error is thrown. */
  command(...args: readonly string[]): Promise<RedisReply>;
  /** Steps the server's wall clock to so many seconds from the true one. */
  setClock(offsetSeconds: number): void;
  signal(signal: NodeJS.Signals): void;
  start(): Promise<void>;
  /** Ends it in order; nothing is saved but what `appendonly` keeps. */
  stop(): Promise<void>;
  restart(): Promise<void>;
  /** Ends it as a crash would. */
  kill9(): Promise<void>;
  /** Stops it and removes its folder. */
  close(): Promise<void>;
}

export type RedisReply = string | number | null | readonly RedisReply[];

/** The path of `redis-server`, or null with a printed line where Redis cannot be had. Fails in CI then. */
export async function findRedis(): Promise<string | null> {
  const found = findBinary('redis-server', ['/usr/bin', '/usr/local/bin', '/opt/homebrew/bin']);
  if (found !== null) return found;
  if (await aptInstall('redis-server')) return findBinary('redis-server', ['/usr/bin']);
  return reportAbsent('Redis', 'no `redis-server` on the PATH or by apt-get');
}

/** Starts a server without data, that saves nothing unless `appendonly` says so. */
export async function startRedis(options: RedisOptions = {}): Promise<Redis> {
  const binary = await findRedis();
  if (binary === null) throw new Error('Redis is absent: ask `findRedis` first');
  const port = await freePort();
  const folder = makeFolder('redis');
  const clock = join(folder, 'clock');
  writeFileSync(clock, '+0');
  const env = options.steppableClock ? await fakeTime(clock) : undefined;
  const command = { name: 'Redis', command: binary, args: serverArgs(port, folder, options), folder, env };
  let service: Service;
  const send = (...args: readonly string[]): Promise<RedisReply> => sendCommand(port, args);
  const start = async (): Promise<void> => {
    service = startService(command);
    await untilReady('Redis', service, async () => (await send('PING')) === 'PONG');
  };
  const { replicaOf } = options;
  await start();
  if (replicaOf) await untilReady('Redis', service!, async () => String(await send('ROLE')).includes('connected'));
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    folder,
    get pid() {
      return service.pid;
    },
    command: send,
    setClock: (offsetSeconds) => writeFileSync(clock, `${offsetSeconds < 0 ? '' : '+'}${offsetSeconds}`),
    signal: (signal) => service.signal(signal),
    start,
    stop: () => service.stop(),
    restart: async () => {
      await service.stop();
      await start();
    },
    kill9: () => service.stop('SIGKILL'),
    close: async () => {
      await service.stop('SIGKILL');
      await removeFolder(folder);
    },
  };
}

function serverArgs(port: number, folder: string, { appendonly, config, replicaOf }: RedisOptions): string[] {
  const settings: Record<string, string> = {
    bind: '127.0.0.1',
    port: String(port),
    dir: folder,
    save: '',
    appendonly: appendonly ? 'yes' : 'no',
    appendfsync: 'always',
    // A replica gets a copy at once, not after waiting for others.
    'repl-diskless-sync-delay': '0',
    ...(replicaOf && { replicaof: `127.0.0.1 ${replicaOf.port}` }),
    ...config,
  };
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, ...splitSetting(name, value)]);
}

/** `replicaof` and `save` take several words, and the server wants each as an argument of its own. */
function splitSetting(name: string, value: string): string[] {
  return name === 'replicaof' ? value.split(' ') : [value];
}

async function fakeTime(clock: string): Promise<Record<string, string>> {
  const library = await findLibfaketime();
  if (library === null) throw new Error('libfaketime is absent: ask `findLibfaketime` first');
  return {
    // Redis' own allocator asks for the time before the library can answer, and hangs. libc's, put before it, does not.
    LD_PRELOAD: `${library}:libc.so.6`,
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
}

/** One command over a connection of its own, without any client library: a test must not depend on what it tests. */
function sendCommand(port: number, args: readonly string[]): Promise<RedisReply> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let received = Buffer.alloc(0);
    const settle = (act: () => void): void => {
      socket.destroy();
      act();
    };
    socket.setTimeout(10_000, () => settle(() => reject(new Error('Redis did not answer in 10 s'))));
    socket.on('error', (error) => settle(() => reject(error)));
    socket.on('close', () => reject(new Error('Redis closed the connection')));
    socket.on('data', (bytes) => {
      received = Buffer.concat([received, bytes]);
      const reply = parseReply(received, 0);
      if (reply === null) return;
      settle(() => (reply.value instanceof Error ? reject(reply.value) : resolve(reply.value)));
    });
    socket.write(`*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join('')}`);
  });
}

interface Parsed {
  readonly value: RedisReply | Error;
  readonly end: number;
}

/** One RESP2 reply that starts there, or null when the rest of it has not come yet. */
function parseReply(bytes: Buffer, start: number): Parsed | null {
  const lineEnd = bytes.indexOf('\r\n', start);
  if (lineEnd < 0) return null;
  const line = bytes.toString('utf8', start + 1, lineEnd);
  const end = lineEnd + 2;
  switch (String.fromCharCode(bytes[start]!)) {
    case '+':
      return { value: line, end };
    case '-':
      return { value: new Error(line), end };
    case ':':
      return { value: Number(line), end };
    case '$': {
      const length = Number(line);
      if (length < 0) return { value: null, end };
      if (bytes.length < end + length + 2) return null;
      return { value: bytes.toString('utf8', end, end + length), end: end + length + 2 };
    }
    default:
      return parseArray(bytes, end, Number(line));
  }
}

function parseArray(bytes: Buffer, start: number, length: number): Parsed | null {
  const values: RedisReply[] = [];
  let end = start;
  for (let index = 0; index < length; index += 1) {
    const item = parseReply(bytes, end);
    if (item === null) return null;
    values.push(item.value instanceof Error ? item.value.message : item.value);
    end = item.end;
  }
  return { value: values, end };
}
