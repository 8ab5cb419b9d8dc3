/** The Node side: the inspector's own server and a process that tells it things, as the example has them. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { createWebSocketReceiver, type StatelyInspectionEvent } from '@statelyai/inspect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InspectionEvent, Observer } from 'xstate';
import { freePort } from '../services/service.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

interface Connected {
  readonly inspect: Observer<InspectionEvent>;
  close(): Promise<void>;
}

const { connectInspector } = (await import(new URL('../../examples/inspector/connect.js', import.meta.url).href)) as {
  connectInspector: (url: string) => Promise<Connected | null>;
};

/** What a program prints until it has ended by itself, and how it ended. */
async function runNode(...args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close') as Promise<[number | null]>]);
  return { code, output };
}

/** What the server passes on, from the moment that it is known to pass things on. */
async function listenTo(url: string): Promise<readonly StatelyInspectionEvent[]> {
  const events: StatelyInspectionEvent[] = [];
  createWebSocketReceiver({ server: url }).subscribe((event) => void events.push(event));
  const inspector = await connectInspector(url);
  const actorRef = { sessionId: 'a sound check' } as never;
  const check = {
    type: '@xstate.event',
    event: { type: 'check' },
    actorRef,
    sourceRef: undefined,
    rootId: '',
  } as const;
  await expect
    .poll(() => {
      inspector!.inspect.next!(check);
      return events.length;
    })
    .toBeGreaterThan(0);
  await inspector!.close();
  return events;
}

describe('the inspector in a Node process', () => {
  let server: ChildProcess;
  let url: string;

  beforeAll(async () => {
    const port = await freePort();
    url = `ws://127.0.0.1:${port}`;
    const args = ['examples/inspector/server.js', String(port)];
    server = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
    for await (const line of createInterface(server.stdout!)) if (line.startsWith('Open ')) break;
  });

  afterAll(async () => {
    server.kill();
    await once(server, 'close');
  });

  it('sees the chosen ones of 3,000 runs, with parent, definition and take-over, and the process ends', async () => {
    const events = await listenTo(url);
    const { code, output } = await runNode('examples/inspector/node.js', url);
    expect(output).toBe(`Inspected at ${url}\n3000 runs, 1000 of them taken over by worker-b\n`);
    expect(code).toBe(0);
    const actors = () => events.filter((event) => event.type === '@xstate.actor');
    const namesOfRuns = Array.from({ length: 10 }, (_, index) => `nightly-${index * 200}`);
    await expect.poll(() => actors().map(({ name }) => name)).toEqual(['registry', ...namesOfRuns]);
    const [registry, ...leases] = actors();
    for (const { parentId, definition } of leases) {
      expect(parentId).toBe(registry!.sessionId);
      expect(definition).toContain('"guard":"isExpired"');
    }
    const lost = leases[1]!.sessionId;
    const steps = () => events.filter(({ type, sessionId }) => type === '@xstate.event' && sessionId === lost);
    await expect
      .poll(() => steps().map((event) => (event as { event: { type: string } }).event.type))
      .toEqual(['xstate.init', 'acquire', 'expire', 'acquire']);
  });

  it.each([
    ['nobody listens', async () => ({ port: await freePort(), close: () => undefined })],
    ['somebody hangs up', hangingUp],
  ])('a process ends by itself where %s', { timeout: 60_000 }, async (_where, stranger) => {
    const { port, close } = await stranger();
    const { code, output } = await runNode('examples/inspector/node.js', `ws://127.0.0.1:${port}`);
    close();
    expect(output).toMatch(/^No inspector at .*: going on without one\n3000 runs, 1000 of them taken over/);
    expect(code).toBe(0);
  });

  it('costs less than as much again for 3,000 leases, behind the filter', { timeout: 120_000 }, async () => {
    const { code, output } = await runNode('--expose-gc', 'test/inspect/inspection-cost.js', url);
    expect(code).toBe(0);
    const { plain, inspected } = JSON.parse(output) as { plain: number; inspected: number };
    const ratio = (inspected / plain).toFixed(2);
    console.log(`3,000 leases: ${plain} ms of processor time, and ${ratio} times that with the inspector`);
    expect(inspected).toBeLessThan(2 * plain);
  });
});

async function hangingUp(): Promise<{ port: number; close: () => void }> {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() };
}
