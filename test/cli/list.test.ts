import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { exitCodes } from '../../src/cli/exit-codes.ts';
import { helpTexts, topics } from '../../src/cli/help.ts';
import { openStore } from '../../src/stores/open-store.ts';
import type { LeaseRecord } from '../../src/stores/store.ts';
import { LESSOR, Scene, until } from './commands.ts';
import { Lessor, lessor, showRun } from './lessor.ts';

async function fill(scene: Scene, count: number): Promise<void> {
  await using store = await openStore(`sqlite:${scene.path('leases.db')}`);
  for (let index = 0; index < count; index += 1) {
    await store.acquire({
      runId: `run-${String(index).padStart(4, '0')}`,
      workerId: `worker-${index % 3}`,
      acquisitionId: randomUUID(),
      ttlSeconds: 3600,
    });
  }
}

function records(lines: string): LeaseRecord[] {
  return lines
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as LeaseRecord);
}

describe('lessor list, show, release', () => {
  it('OB1 list --json gives every run once, in order, with worker, token and remaining time by the store’s clock', async () => {
    await using scene = new Scene();
    await fill(scene, 1000);
    const { code, stdout, stderr } = await lessor(scene, ['list', '--json']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const all = records(stdout);
    expect(all.map(({ runId }) => runId)).toEqual(
      [...Array(1000).keys()].map((n) => `run-${String(n).padStart(4, '0')}`),
    );
    for (const record of all) {
      expect(record).toMatchObject({ state: 'held', fencingToken: 1, fence: 1, ttlSeconds: 3600, revoked: null });
      expect(record.remainingSeconds).toBeGreaterThan(3500);
      expect(record.remainingSeconds).toBeLessThanOrEqual(3600);
      expect(record.expiresAt).toBeCloseTo(record.acquiredAt + 3600, 1);
      expect(record).not.toHaveProperty('acquisitionId'); // what is read gives no right to write
    }
  });

  it('OB1 list filters by state, worker and prefix', async () => {
    await using scene = new Scene();
    await fill(scene, 12);
    await lessor(scene, ['release', 'run-0005', '--force', '--reason', 'test']);
    const idsOf = async (...args: string[]) =>
      records((await lessor(scene, ['list', '--json', ...args])).stdout).map(({ runId }) => runId);
    expect(await idsOf('--state', 'free')).toEqual(['run-0005']);
    expect(await idsOf('--worker', 'worker-1', '--state', 'held')).toEqual([
      'run-0001',
      'run-0004',
      'run-0007',
      'run-0010',
    ]);
    expect(await idsOf('--prefix', 'run-001')).toEqual(['run-0010', 'run-0011']);
    expect(await idsOf('--prefix', 'RUN')).toEqual([]);
  });

  it('list for people is a table, and a name cannot play tricks on the terminal', async () => {
    await using scene = new Scene();
    const name = '\u001b[31mred\nline';
    await lessor(scene, ['run', name, '--worker', 'w', '--', 'true']);
    await lessor(scene, ['run', 'plain', '--worker', 'w', '--', 'true']);
    const { stdout } = await lessor(scene, ['list']);
    expect(stdout).toBe(
      [
        'RUN                    STATE  WORKER  TOKEN  LEFT',
        '"\\u001b[31mred\\nline"  free   w       1      -',
        'plain                  free   w       1      -',
        '',
      ].join('\n'),
    );
  });

  it('OB1 show tells worker, token, times and fence while a command runs, and keeps the fence afterwards', async () => {
    await using scene = new Scene();
    const run = new Lessor(scene, [
      'run',
      'r',
      '--worker',
      'w',
      '--ttl',
      '20',
      '--',
      'sh',
      '-c',
      'echo > ready; sleep 100',
    ]);
    await until('the command', () => scene.read('ready') !== '');
    const now = Date.now() / 1000;
    const held = await showRun(scene, 'r');
    expect(held).toMatchObject({ runId: 'r', state: 'held', workerId: 'w', fencingToken: 1, fence: 1, ttlSeconds: 20 });
    expect(held['acquiredAt']).toBeGreaterThan(now - 20);
    expect(held['acquiredAt']).toBeLessThan(now + 1);
    expect(held['remainingSeconds']).toBeGreaterThan(5);
    expect(held['remainingSeconds']).toBeLessThanOrEqual(20);
    const { stdout } = await lessor(scene, ['show', 'r']);
    expect(stdout).toMatch(/^run {7}r\nstate {5}held, the worker has it\nworker {4}w\ntoken {5}1\nlease {5}r:w:1\n/);
    expect(stdout).toMatch(/\nexpires {3}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\nremaining \d+ s\nttl {7}20 s\n/);
    run.kill('SIGTERM');
    await run.ended;
    expect(await showRun(scene, 'r')).toMatchObject({ state: 'free', workerId: 'w', fence: 1, expiresAt: null });
  });

  it('show tells who took a run away, when and why', async () => {
    await using scene = new Scene();
    await fill(scene, 1);
    await lessor(scene, ['release', 'run-0000', '--force', '--reason', 'stuck', '--by', 'ops']);
    const { stdout } = await lessor(scene, ['show', 'run-0000']);
    expect(stdout).toContain('state     free, taken away from the worker\n');
    expect(stdout).toMatch(/\nrevoked {3}\d{4}-.* UTC by ops: stuck\n/);
  });

  it('show of a run that was never leased is exit code 1', async () => {
    await using scene = new Scene();
    const outcome = await lessor(scene, ['show', 'r', '--json']);
    expect(outcome).toEqual({ code: 1, stdout: '', stderr: 'lessor: run r was never leased here\n' });
  });

  it('release without --force, or without a reason, takes nothing away', async () => {
    await using scene = new Scene();
    await fill(scene, 1);
    expect((await lessor(scene, ['release', 'run-0000', '--reason', 'x'])).code).toBe(64);
    expect((await lessor(scene, ['release', 'run-0000', '--force'])).code).toBe(64);
    expect(await showRun(scene, 'run-0000')).toMatchObject({ state: 'held' });
  });

  it('release --json tells which lease was taken away', async () => {
    await using scene = new Scene();
    await fill(scene, 1);
    const { code, stdout } = await lessor(scene, ['release', 'run-0000', '--force', '--reason', 'stuck', '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      revoked: { runId: 'run-0000', workerId: 'worker-0', fencingToken: 1 },
      reason: 'stuck',
      by: expect.stringContaining('@') as string,
    });
  });

  it('a reader that goes away early ends list quietly', async () => {
    await using scene = new Scene();
    await fill(scene, 400); // more than a pipe holds
    const script = '"$0" "$1" list --json --prefix run- | head -n 1 | grep -c run-0000';
    const run = new Lessor(scene, ['run', 'r', '--', 'sh', '-c', script, process.execPath, LESSOR]);
    expect(await run.ended).toEqual({ code: 0, stdout: '1\n', stderr: '' });
  });
});

describe('lessor --help', () => {
  it('help explains on stdout, without asking the store', async () => {
    await using scene = new Scene();
    const { code, stdout, stderr } = await lessor(scene, ['run', '--help'], {
      LESSOR_STORE: 'sqlite:/dev/null/nowhere',
    });
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: helpTexts.run, stderr: '' });
  });

  it.each(topics)('the help of %s says how it is used, in lines that fit a page', (topic) => {
    const text = helpTexts[topic];
    expect(text).toMatch(topic === 'lessor' ? /^Usage: lessor COMMAND/m : new RegExp(`^Usage: lessor ${topic} `, 'm'));
    for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(120);
  });

  it('the help of run names every exit code that run can have', () => {
    const { nothing: _nothing, ok: _ok, notWritten: _notWritten, ...ofRun } = exitCodes;
    for (const code of Object.values(ofRun)) expect(helpTexts.run).toMatch(new RegExp(`^  ${code} `, 'm'));
  });

  it('--version is that of the package', async () => {
    await using scene = new Scene();
    const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    expect(await lessor(scene, ['--version'])).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: '' });
  });
});
