/** Real processes and real time: what is thrown, what is sent after a stop, and what is left behind. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, it } from 'vitest';
import { LeaseLostError } from '../../src/errors.ts';
import { LeaseManager } from '../../src/manager/lease-manager.ts';
import { MemoryStore } from '../../src/stores/memory.ts';
import { openStore } from '../../src/stores/open-store.ts';

interface Line {
  readonly at: number;
  readonly held?: number;
  readonly sent?: string;
  readonly aborted?: string;
  readonly checked?: string;
  readonly remaining?: number;
}

const children: ChildProcess[] = [];
const folders: string[] = [];

afterEach(() => {
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

describe('the manager in a process of its own', () => {
  it('RN2. Nothing is thrown from the background, and the process ends by itself (C14)', async () => {
    const child = start('background.mjs');
    const [out, err, code] = await Promise.all([text(child.stdout!), text(child.stderr!), exitOf(child)]);
    assert.equal(out, 'LEASE_LOST revoked revoked\n', err);
    assert.equal(code, 0, err);
    for (const type of ['uncertain', 'lost', "a lease's signal"]) {
      assert.ok(err.includes(`LessorListenerWarning: A listener of ${type} threw`), err);
    }
  });

  it('RN14. A stopped process that continues knows that it lost, before it sends anything', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'lessor-'));
    folders.push(folder);
    const url = `sqlite:${join(folder, 'leases.db')}`;
    await using store = await openStore(url);
    await using leases = new LeaseManager(store, { ttlSeconds: 5, workerId: 'successor' });
    const child = start('holder.mjs', url);
    const lines: Line[] = [];
    const ended = exitOf(child);
    const held = new Promise<void>((resolve) => {
      createInterface({ input: child.stdout! }).on('line', (line) => {
        lines.push(JSON.parse(line) as Line);
        resolve();
      });
    });
    await held;
    child.kill('SIGSTOP');
    await using lease = await leases.acquire('run-1', { waitSeconds: 20 });
    assert.ok(lease.fencingToken > lines[0]!.held!);
    const continuedAt = Date.now();
    child.kill('SIGCONT');
    assert.equal(await ended, 0);
    const after = lines.filter(({ at }) => at >= continuedAt);
    assert.deepEqual(
      after.filter(({ sent }) => sent !== undefined),
      [],
      'no renewal was sent',
    );
    assert.equal(after.filter(({ aborted }) => aborted === 'expired').length, 1);
    assert.deepEqual(
      after.filter(({ checked }) => checked !== undefined).map(({ checked, remaining }) => [checked, remaining]),
      [['expired', 0]],
    );
    lease.assertHeld();
  });
});

describe('the manager in real time', () => {
  it('RN13. assertHeld() is right directly after the event loop was blocked for real', async () => {
    await using store = new MemoryStore();
    await using leases = new LeaseManager(store, { ttlSeconds: 1 });
    const holding = leases.hold('run-1', {}, (lease) => {
      const until = performance.now() + 2000;
      while (performance.now() < until);
      assert.equal(lease.remainingSeconds(), 0);
      assert.throws(() => lease.assertHeld(), LeaseLostError);
      return 42;
    });
    await assert.rejects(holding, { code: 'LEASE_LOST', result: 42 });
  });

  it('C14 holds leave nothing behind: no timer, no listener, no memory', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    await using store = new MemoryStore();
    await using leases = new LeaseManager(store);
    const { signal } = new AbortController();
    const cycle = async (holds: number): Promise<number> => {
      for (let hold = 0; hold < holds; hold += 1) {
        await leases.hold('run-1', { signal, waitSeconds: 1 }, (lease) => lease.signal.aborted);
      }
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = await cycle(1000);
    const timers = activeTimers();
    const after = await cycle(4000);
    assert.ok(after - before < 400_000, `${after - before} bytes more after 4,000 holds: 100 each at most`);
    assert.equal(activeTimers(), timers);
  }, 120_000);
});

function start(name: string, ...rest: string[]): ChildProcess {
  const file = fileURLToPath(new URL(`children/${name}`, import.meta.url));
  const child = spawn(process.execPath, [file, ...rest], { stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  return child;
}

function exitOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.once('exit', resolve));
}

function activeTimers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
}
