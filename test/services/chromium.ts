/** A browser of the tests' own: Debian's Chromium, found on the PATH or installed by apt-get, with nothing to remember. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium, type BrowserContext } from 'playwright-core';
import { aptInstall } from './apt.ts';
import { findBinary, makeFolder, removeFolder, reportAbsent } from './service.ts';

export interface Browser {
  readonly context: BrowserContext;
  /** What its pages threw and did not catch. */
  readonly errors: readonly string[];
  /** The URLs that its pages asked for. */
  readonly requests: readonly string[];
  /** What was asked for beyond this machine, also by the browser itself, as `host:port` or a URL. Everything was refused. */
  readonly refused: readonly string[];
  close(): Promise<void>;
}

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** The browser's program, or null where there is none: then its tests are skipped with a line, and fail in CI. */
export async function findChromium(): Promise<string | null> {
  const find = (): string | undefined =>
    NAMES.map((name) => findBinary(name)).find((path) => path !== null) ?? undefined;
  const found = find() ?? ((await aptInstall('chromium')) ? find() : undefined);
  return found ?? reportAbsent('Chromium', 'it is not on the PATH, and apt-get could not install it');
}

/** Starts it without a window. What is not on loopback goes to a proxy that writes it down and refuses it. */
export async function startChromium(executablePath: string): Promise<Browser> {
  const folder = makeFolder('chromium');
  const errors: string[] = [];
  const requests: string[] = [];
  const refused: string[] = [];
  const proxy = await refuseAll(refused);
  const { port } = proxy.address() as AddressInfo;
  const context = await chromium.launchPersistentContext(folder, {
    executablePath,
    headless: true,
    args: ARGUMENTS,
    proxy: { server: `http://127.0.0.1:${port}`, bypass: '127.0.0.1,localhost' },
    viewport: { width: 1200, height: 760 },
  });
  context.on('request', (request) => requests.push(request.url()));
  context.on('weberror', (error) => errors.push(String(error.error())));
  return {
    context,
    errors,
    requests,
    refused,
    close: async () => {
      await context.close();
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
      await removeFolder(folder);
    },
  };
}

async function refuseAll(requests: string[]): Promise<Server> {
  const proxy = createServer(({ url }, response) => {
    requests.push(String(url));
    response.writeHead(403).end();
  });
  proxy.on('connect', ({ url }, socket) => {
    requests.push(String(url));
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return proxy;
}
