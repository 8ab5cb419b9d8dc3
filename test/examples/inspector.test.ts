/** The inspector example as it stands: its page in a browser, with a receiver in place of the hosted inspector. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findChromium, startChromium, type Browser } from '../services/chromium.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PICTURE = fileURLToPath(new URL('../../docs/inspector.png', import.meta.url));

/** What the receiver got, as the inspector sends it. */
interface Received {
  readonly type: string;
  readonly name?: string;
  readonly sessionId: string;
  readonly parentId?: string;
  readonly definition?: string;
  readonly event?: { readonly type: string };
  readonly snapshot?: {
    readonly value?: string;
    readonly context: { readonly lease: { fencingToken: number } | null };
  };
}

const chromium = await findChromium();

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.skipIf(chromium === null)('the inspector example in a browser', { timeout: 120_000 }, () => {
  let server: ChildProcess;
  let url: string;
  let browser: Browser;
  let page: Page;
  let receiver: Page;

  beforeAll(async () => {
    server = spawn(process.execPath, ['examples/inspector/serve.js', '0'], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    for await (const line of createInterface(server.stdout!)) {
      url = /http:\S+/.exec(line)![0];
      break;
    }
    browser = await startChromium(chromium!);
    page = await browser.context.newPage();
    await page.goto(`${url}?inspector=/receiver.html`);
  });

  afterAll(async () => {
    await browser?.close();
    server.kill();
    await once(server, 'close');
  });

  const received = (): Promise<Received[]> => receiver.evaluate<Received[]>('events');
  const log = (): Promise<string[]> => page.locator('#log li').allTextContents();
  const button = (runId: string, worker: string, call: string) =>
    page.locator(`[data-run="${runId}"] [data-worker="${worker}"] [data-call="${call}"]`);
  const cells = (runId: string): Promise<string[]> =>
    page.locator(`[data-run="${runId}"] td:not([data-worker])`).allTextContents();

  it('runs in a browser: the bundle asks for no module of Node', () => {
    expect(browser.errors).toEqual([]);
  });

  it('opens no inspector by itself, and one at a click', async () => {
    expect(browser.context.pages().map((one) => one.url())).toEqual(['about:blank', page.url()]);
    const opened = browser.context.waitForEvent('page');
    await page.locator('#open').click();
    receiver = await opened;
    await expect.poll(received).toHaveLength(3);
  });

  it('acts out acquire, heartbeat, expiry, take-over and release, in words', async () => {
    await page.locator('#act').click();
    await expect.poll(log, { timeout: 60_000 }).toHaveLength(11);
    expect((await log()).toReversed()).toEqual([
      '0 s  worker-a acquires run-1: granted, token 1',
      '0 s  worker-b acquires run-2: granted, token 2',
      '4 s  4 s have passed',
      '4 s  worker-a sends a heartbeat for run-1: extended to 14 s',
      '4 s  worker-b acquires run-1: refused, worker-a has it',
      '14 s  10 s have passed',
      '14 s  expiry: lapsed run-2 of worker-b, run-1 of worker-a',
      '14 s  worker-b acquires run-1: granted, token 3, after worker-a',
      '14 s  worker-a sends a heartbeat for run-1: refused, the lease is lost',
      '14 s  worker-b releases run-2: free',
      '14 s  worker-b releases run-1: free',
    ]);
  });

  it('delivers the registry, and each lease as its child, with the three states and the named guards', async () => {
    const actors = (await received()).filter(({ type }) => type === '@xstate.actor');
    const [registry, ...leases] = actors;
    expect(actors.map(({ name }) => name)).toEqual(['registry', 'run-1', 'run-2']);
    for (const { parentId, definition } of leases) {
      expect(parentId).toBe(registry!.sessionId);
      expect(Object.keys((JSON.parse(definition!) as { states: object }).states).toSorted()).toEqual([
        'expired',
        'free',
        'held',
      ]);
      for (const guard of ['isExpired', 'isCurrent', 'mayExtend']) expect(definition).toContain(`"guard":"${guard}"`);
    }
  });

  it('delivers the take-over event by event, with the state after each', async () => {
    const events = await received();
    const run = events.find(({ name }) => name === 'run-1')!.sessionId;
    const story = events.filter(({ sessionId, type }) => sessionId === run && type === '@xstate.snapshot');
    const lines = story.map(({ event, snapshot }) => {
      const token = snapshot!.context.lease?.fencingToken ?? '-';
      return `${event!.type}: ${snapshot!.value} ${token}`;
    });
    expect(lines).toEqual([
      'xstate.init: free -',
      'acquire: held 1',
      'heartbeat: held 1',
      'acquire: held 1',
      'expire: expired 1',
      'acquire: held 3',
      'release: free -',
    ]);
  });

  it('lets each step be done by hand', async () => {
    await button('run-3', 'worker-a', 'acquire').click();
    expect(await cells('run-3')).toEqual(['run-3', 'held', 'worker-a', '4', '10', 'held']);
    await page.locator('#pass-5').click();
    await button('run-3', 'worker-a', 'heartbeat').click();
    expect((await cells('run-3'))[4]).toBe('10');
    await page.locator('#pass-5').click();
    await page.locator('#pass-5').click();
    // Past its ttl, and the chart has not been told the time.
    expect(await cells('run-3')).toEqual(['run-3', 'expired', 'worker-a', '4', '0', 'held']);
    await page.locator('#expire').click();
    expect((await cells('run-3'))[5]).toBe('expired');
    await button('run-3', 'worker-b', 'acquire').click();
    await button('run-3', 'worker-a', 'release').click();
    expect((await log())[0]).toBe('29 s  worker-a releases run-3: refused, the lease is not the current one');
    expect(await cells('run-3')).toEqual(['run-3', 'held', 'worker-b', '5', '10', 'held']);
    const isCall = ({ type, event }: Received) => type === '@xstate.event' && event?.type === 'lease.acquire';
    await expect.poll(async () => (await received()).filter(isCall)).toHaveLength(6);
  });

  it('looks like its picture in the documents', async () => {
    const picture = await page.screenshot();
    if (process.env['LESSOR_PICTURES'] === '1') writeFileSync(PICTURE, picture);
    const sizes = [picture, readFileSync(PICTURE)].map((png) => [png.readUInt32BE(16), png.readUInt32BE(20)]);
    expect(sizes[1]).toEqual(sizes[0]);
  });

  it('asks for nothing beyond this machine, but for the hosted inspector, when it is told to open that', async () => {
    expect(new Set(browser.requests.map((asked) => new URL(asked).origin))).toEqual(new Set([new URL(url).origin]));
    const hosted = await browser.context.newPage();
    await hosted.goto(url);
    await hosted.locator('#open').click();
    await expect.poll(() => browser.requests.at(-1)).toBe('https://stately.ai/inspect');
    await expect.poll(() => browser.refused).toContain('stately.ai:443');
  });
});
