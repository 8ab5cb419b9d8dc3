import { spawn } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { endingPlan } from '../../src/cli/deadline.ts';
import { isRunning } from '../../src/cli/process-group.ts';
import { WatchdogLink } from '../../src/cli/watchdog-link.ts';
import type { WatchdogMessage } from '../../src/cli/watchdog-messages.ts';
import { deadlineIn } from '../../src/cli/watchdog-messages.ts';
import { STUBBORN, Scene, WATCHDOG, isAlive, until } from './commands.ts';

/** A lease that nobody renews, unless told otherwise. */
function leaseOf(ttlSeconds: number) {
  const start = performance.now();
  return {
    runId: 'run-1',
    acquisitionId: `acquisition-${Math.random()}`,
    remainingSeconds: () => ttlSeconds - (performance.now() - start) / 1000,
  };
}

async function startWatchdog(scene: Scene): Promise<WatchdogLink> {
  const watchdog = new WatchdogLink(WATCHDOG);
  await watchdog.ready;
  if (watchdog.processId !== undefined) scene.trackLeader(watchdog.processId);
  return watchdog;
}

async function startCommand(scene: Scene, script = STUBBORN, env: NodeJS.ProcessEnv = {}): Promise<number> {
  const { pid } = scene.shell(script, env);
  await until('the command', () => scene.read('beat') !== '');
  return pid;
}

describe('watchdog', () => {
  it('CM1 without a renewal the command is asked to end while the lease holds, and is gone at the deadline', async () => {
    await using scene = new Scene();
    const watchdog = await startWatchdog(scene);
    const leader = await startCommand(scene);
    const lease = leaseOf(3);
    const deadline = Date.now() / 1000 + 3;
    let told = 0;
    watchdog.onTerminated = () => (told += 1);
    watchdog.guard(lease, endingPlan(3, 1));
    watchdog.commandStarted(leader);
    await until('the end of the command', () => !isRunning(leader));
    expect(scene.askedAt()).toBeLessThan(deadline);
    expect(scene.lastAliveAt()).toBeLessThan(deadline);
    await until('the word to lessor run', () => told === 1);
    expect(scene.read('asked').trim().split('\n')).toHaveLength(1);
    await watchdog.end();
  });

  it('a renewal moves the deadline, and after the goodbye nothing is ended', async () => {
    await using scene = new Scene();
    const watchdog = await startWatchdog(scene);
    const leader = await startCommand(scene);
    const lease = leaseOf(1);
    watchdog.guard(lease, endingPlan(1, 0.2));
    watchdog.commandStarted(leader);
    watchdog.renewed(60);
    await until('the first deadline and more', () => lease.remainingSeconds() < -0.3);
    expect(scene.read('asked')).toBe('');
    await watchdog.end();
    expect(watchdog.processId !== undefined && isAlive(watchdog.processId)).toBe(false);
    expect(isRunning(leader)).toBe(true);
  });

  it('a command that was told to end by lessor run gets no more time by a renewal, and no second SIGTERM', async () => {
    await using scene = new Scene();
    const watchdog = await startWatchdog(scene);
    const leader = await startCommand(scene);
    watchdog.guard(leaseOf(60), endingPlan(60, 5));
    watchdog.commandStarted(leader);
    watchdog.terminated(0.5);
    watchdog.renewed(60);
    await until('the end of the command', () => !isRunning(leader), 5);
    expect(scene.read('asked')).toBe('');
    await watchdog.end();
  });

  // By what Linux alone has.
  it.runIf(process.platform === 'linux')(
    'CM1 a command that was being started when lessor run died is found and ended, and then the watchdog ends',
    async () => {
      await using scene = new Scene();
      const watchdog = scene.track(
        spawn(process.execPath, [WATCHDOG.pathname], { stdio: ['pipe', 'ignore', 'ignore'] }),
      );
      const lease: WatchdogMessage = {
        type: 'lease',
        runId: 'run-1',
        acquisitionId: `acquisition-${Math.random()}`,
        plan: endingPlan(60, 0.2),
        deadline: deadlineIn(60),
      };
      const leader = await startCommand(scene, STUBBORN, { LESSOR_ACQUISITION_ID: lease.acquisitionId });
      watchdog.stdin.end(`${JSON.stringify(lease)}\n`); // and no word of the command
      await until('the end of the watchdog', () => watchdog.exitCode !== null);
      expect(watchdog.exitCode).toBe(0);
      expect(isRunning(leader)).toBe(false);
      expect(scene.read('asked')).not.toBe('');
    },
  );

  it('a watchdog that was killed is replaced by one that knows the same', async () => {
    await using scene = new Scene();
    const watchdog = await startWatchdog(scene);
    const first = watchdog.processId as number;
    const leader = await startCommand(scene);
    watchdog.guard(leaseOf(3), endingPlan(3, 0.5));
    watchdog.commandStarted(leader);
    process.kill(first, 'SIGKILL');
    await until('another watchdog', () => watchdog.processId !== first);
    scene.trackLeader(watchdog.processId as number);
    await until('the end of the command', () => !isRunning(leader));
    await watchdog.end();
  });

  it('a watchdog that ends at once is told', async () => {
    const watchdog = new WatchdogLink(new URL('exit-codes.js', WATCHDOG));
    await expect(watchdog.ready).rejects.toThrow('The watchdog ended at once');
    await watchdog.end();
  });
});
