import { describe, expect, it } from 'vitest';
import { endCommand, findCommand, isRunning, killCommand, terminateCommand } from '../../src/cli/process-group.ts';
import { Scene, isAlive, until } from './commands.ts';

const onLinux = process.platform === 'linux';

describe('process group', () => {
  it('CM1 a child of the command that ignores SIGTERM is killed after the grace, with its own children', async () => {
    await using scene = new Scene();
    const { pid } = scene.shell('trap "" TERM; sh -c "sleep 100 & echo \\$! >> ids; wait" & echo $! >> ids; wait');
    await until('both processes', () => scene.processIds('ids').length === 2);
    const start = performance.now();
    expect(await endCommand(pid, 0.3, 10)).toBe(true);
    expect(performance.now() - start).toBeGreaterThanOrEqual(300);
    expect([pid, ...scene.processIds('ids')].filter(isAlive)).toEqual([]);
  });

  it('a command that ends when asked is not killed', async () => {
    await using scene = new Scene();
    const { pid } = scene.shell('trap "echo asked > end; exit 0" TERM; echo > ready; while :; do sleep 0.01; done');
    await until('the trap', () => scene.read('ready') !== '');
    expect(await endCommand(pid, 10, 10)).toBe(true);
    expect(scene.read('end')).toBe('asked\n');
  });

  it('a stopped command hears that it is asked to end', async () => {
    await using scene = new Scene();
    const { pid } = scene.shell('trap "exit 0" TERM; echo > ready; while :; do sleep 0.01; done');
    await until('the trap', () => scene.read('ready') !== '');
    process.kill(-pid, 'SIGSTOP');
    terminateCommand(pid);
    await until('the end', () => !isRunning(pid));
  });

  it('what the leader left behind still counts as running, and an uncollected process does not', async () => {
    await using scene = new Scene();
    const child = scene.shell('sleep 100 & echo $! > ids');
    await until('the end of the leader', () => child.exitCode !== null);
    expect(isRunning(child.pid)).toBe(true);
    killCommand(child.pid);
    await until('the end of the rest', () => !isRunning(child.pid));
  });

  // By what Linux alone has.
  it.runIf(onLinux)('a process that has ended and whose parent does not collect it is not running', async () => {
    await using scene = new Scene();
    // The leader itself says its id: only then has it a group of its own.
    scene.shell(`setsid sh -c 'echo $$ > ids' & exec sleep 100`);
    await until('the process', () => scene.processIds('ids').length === 1);
    const [leader] = scene.processIds('ids') as [number];
    await until('its end', () => !isRunning(leader));
    expect(process.kill(-leader, 0)).toBe(true); // to the system it is still there
  });

  // By what Linux alone has.
  it.runIf(onLinux)('a job in a group of its own inside the session is reached', async () => {
    await using scene = new Scene();
    const { pid } = scene.shell("exec bash -c 'set -m; sleep 100 & echo $! > ids; wait'");
    await until('the job', () => scene.processIds('ids').length === 1);
    const [job] = scene.processIds('ids') as [number];
    process.kill(-pid, 'SIGKILL');
    await until('the end of the leader', () => !isAlive(pid));
    expect(isAlive(job)).toBe(true);
    expect(isRunning(pid)).toBe(true);
    killCommand(pid);
    await until('the end of the job', () => !isAlive(job));
  });

  // By what Linux alone has.
  it.runIf(onLinux)('a command is found by the acquisition id in its environment', async () => {
    await using scene = new Scene();
    const { pid } = scene.shell('sleep 100 & wait', { LESSOR_ACQUISITION_ID: 'acquisition-of-this-test' });
    await until('the command', () => findCommand('acquisition-of-this-test') !== undefined);
    expect(findCommand('acquisition-of-this-test')).toBe(pid);
    expect(findCommand('acquisition-of-this-tes')).toBeUndefined();
  });
});
