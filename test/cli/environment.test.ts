/** `lessor` where its surroundings are wrong: no folder to write to, a full disk, a directory that is gone. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, closeSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { exitCodes } from '../../src/cli/exit-codes.ts';
import { findRedis, startRedis } from '../services/redis.ts';
import { LESSOR, Scene } from './commands.ts';
import { lessor } from './lessor.ts';

const redis = await findRedis();

describe('lessor in wrong surroundings', () => {
  it('B14 a state directory that cannot be made is an unavailable store, told in one line, without a hang', async () => {
    await using scene = new Scene();
    writeFileSync(scene.path('file'), '');
    for (const state of [scene.path('file'), '/proc/lessor-test']) {
      const { code, stderr } = await lessor(scene, ['run', 'run-1', '--', 'true'], {
        LESSOR_STORE: '',
        XDG_STATE_HOME: state,
      });
      expect(code).toBe(exitCodes.storeUnavailable);
      expect(stderr).toContain(`lessor: The folder for the leases, "${state}/lessor", cannot be made`);
      expect(stderr).not.toMatch(/\n +at /);
    }
  });

  it('a state directory is made for its user alone', async () => {
    await using scene = new Scene();
    const env = { LESSOR_STORE: '', XDG_STATE_HOME: scene.path('state') };
    expect(await lessor(scene, ['run', 'run-1', '--', 'true'], env)).toMatchObject({ code: 0, stderr: '' });
    expect(statSync(scene.path('state/lessor')).mode & 0o777).toBe(0o700);
  });

  it('B14 a store that is named relative to a directory that is gone is an unavailable store', async () => {
    await using scene = new Scene();
    const gone = scene.path('gone');
    mkdirSync(gone);
    const command = 'rmdir "$PWD"; exec "$0" "$1" list --store sqlite:./leases.db';
    const child = scene.track(spawn('sh', ['-c', command, process.execPath, LESSOR], { cwd: gone }));
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const [code] = (await once(child, 'close')) as [number];
    rmSync(gone, { force: true, recursive: true });
    expect({ code, stderr }).toEqual({
      code: exitCodes.storeUnavailable,
      stderr: expect.stringContaining('lessor: The working directory is gone'),
    });
    expect(stderr).not.toMatch(/\n +at /);
  });

  // By what Linux alone has.
  it.skipIf(process.platform !== 'linux')('output that could not be written is no success', async () => {
    await using scene = new Scene();
    await lessor(scene, ['run', 'run-1', '--', 'true']);
    for (const args of [['list'], ['list', '--json'], ['show', 'run-1'], ['scenarios']]) {
      const full = openSync('/dev/full', 'w');
      const env = { ...process.env, LESSOR_STORE: `sqlite:${scene.path('leases.db')}` };
      const child = scene.track(spawn(process.execPath, [LESSOR, ...args], { stdio: ['ignore', full, 'pipe'], env }));
      let stderr = '';
      child.stderr!.setEncoding('utf8').on('data', (text: string) => (stderr += text));
      const [code] = (await once(child, 'close')) as [number];
      closeSync(full);
      expect({ code, stderr }).toEqual({
        code: exitCodes.notWritten,
        stderr: expect.stringContaining('lessor: the output could not be written'),
      });
    }
  });

  it('a mistake is told in one sentence, and its cause only where that says more', async () => {
    await using scene = new Scene();
    const { stderr } = await lessor(scene, ['list', 'x']);
    expect(stderr).toContain('Did you mean --prefix?\n');
    expect((await lessor(scene, ['run', 'x', '--ttl', '-1', '--', 'true'])).stderr).toContain('is ambiguous.\n');
    const refused = await lessor(scene, ['list', '--store', 'redis://127.0.0.1:1']);
    expect(refused.stderr.match(/ECONNREFUSED/g)).toHaveLength(1);
    const misnamed = await lessor(scene, ['list', '--store', 'redis:bar']);
    expect(misnamed).toMatchObject({ code: exitCodes.usage, stderr: expect.stringContaining('redis://127.0.0.1') });
  });

  // Where it cannot be had: a line says so on a laptop, and CI fails.
  it.skipIf(redis === null)(
    'B9 a server that drops leases when it is full cannot be asked, and the remedy is named',
    async () => {
      await using scene = new Scene();
      const server = await startRedis({ config: { maxmemory: '50mb', 'maxmemory-policy': 'allkeys-lru' } });
      const refused = await lessor(scene, ['list', '--store', server.url]);
      await server.close();
      expect(refused).toMatchObject({
        code: exitCodes.storeUnavailable,
        stderr: expect.stringContaining('got allkeys-lru: a lease that is dropped is free for anyone. Change it'),
      });
    },
  );
});
