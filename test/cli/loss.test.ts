import Database from 'libsql';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isRunning } from '../../src/cli/process-group.ts';
import { STUBBORN, Scene, isAlive, until } from './commands.ts';
import { Lessor, lessor, showRun } from './lessor.ts';

const WORK = 'while :; do sleep 0.01; done';
/** Has a child that ignores the request to end as well, and notes the numbers of both. */
const STUBBORN_FAMILY = `sh -c 'trap "" TERM; sleep 100' & echo $! >> ids; echo $$ >> ids; ${STUBBORN}`;
/** Notes which of the processes of the file `ids` still run. One that ended and was not collected yet does not. */
const NOTE_ALIVE =
  'for id in $(cat ids 2>/dev/null); do case $(sed "s/.*) //" /proc/$id/stat 2>/dev/null) in ""|Z*|X*) ;; *) echo $id >> alive;; esac; done';
const WITNESS = `${NOTE_ALIVE}; echo $LESSOR_FENCING_TOKEN > token`;

/** A stubborn command under a lease, and the numbers of its two processes. */
async function startStubborn(scene: Scene, ttlSeconds: number, options: readonly string[] = []) {
  const args = ['run', 'r', '--ttl', String(ttlSeconds), ...options, '--', 'sh', '-c', STUBBORN_FAMILY];
  const run = new Lessor(scene, args);
  await until('the command', () => scene.processIds('ids').length === 2 && scene.read('beat') !== '');
  const [child, leader] = scene.processIds('ids') as [number, number];
  scene.trackLeader(leader);
  return { run, leader, processIds: [child, leader] };
}

function startWitness(scene: Scene, ttlSeconds: number): Lessor {
  return new Lessor(scene, ['run', 'r', '--ttl', String(ttlSeconds), '--', 'sh', '-c', WITNESS]);
}

function stateOf(processId: number): string {
  const stat = readFileSync(`/proc/${processId}/stat`, 'latin1');
  return stat.charAt(stat.lastIndexOf(')') + 2);
}

/** Stops it, though not inside a transaction: there it would keep the whole file locked, and nobody could take over. */
async function freeze(scene: Scene, run: Lessor): Promise<void> {
  const database = new Database(scene.path('leases.db'));
  try {
    for (let isFree = false; !isFree;) {
      run.kill('SIGSTOP');
      await until('the freeze', () => stateOf(run.process.pid) === 'T');
      isFree = canWrite(database);
      if (!isFree) run.kill('SIGCONT');
    }
  } finally {
    database.close();
  }
}

function canWrite(database: Database.Database): boolean {
  try {
    database.exec('BEGIN IMMEDIATE');
  } catch {
    return false;
  }
  database.exec('ROLLBACK');
  return true;
}

describe('lessor run, when the lease is lost', () => {
  it('CM1 TK10 lessor run is killed: the next one runs within the ttl and a second, and the command is gone by then', async () => {
    await using scene = new Scene();
    const { run, processIds } = await startStubborn(scene, 2);
    const next = startWitness(scene, 2);
    await until('the next one to wait', () => next.stderr.includes('waiting'));
    const killedAt = performance.now();
    run.kill('SIGKILL');
    const { code } = await next.ended;
    expect(code).toBe(0);
    expect((performance.now() - killedAt) / 1000).toBeLessThan(2 + 1 + 1); // its command and its end take time too
    expect(scene.read('token')).toBe('2\n');
    expect(scene.read('alive')).toBe('');
    expect(processIds.filter(isAlive)).toEqual([]);
    expect(scene.read('asked')).not.toBe(''); // it was asked before it was killed
    expect((await run.ended).stderr).toContain('lessor run has died: ending the command of run "r"');
  });

  it('CM1 lessor run is frozen: the command is gone before the next one runs, and it knows of the loss when it wakes', async () => {
    await using scene = new Scene();
    const { run, processIds } = await startStubborn(scene, 2);
    const next = startWitness(scene, 2);
    await until('the next one to wait', () => next.stderr.includes('waiting'));
    await freeze(scene, run);
    expect((await next.ended).code).toBe(0);
    expect(scene.read('token')).toBe('2\n');
    expect(scene.read('alive')).toBe('');
    expect(processIds.filter(isAlive)).toEqual([]);
    run.kill('SIGCONT');
    const { code, stderr } = await run.ended;
    expect(code).toBe(79);
    expect(stderr).toContain('lessor run does not renew its lease: ending the command of run "r"');
    expect(await showRun(scene, 'r')).toMatchObject({ state: 'free', fencingToken: 2 });
  });

  it('a freeze shorter than the lease costs nothing', async () => {
    await using scene = new Scene();
    const script = 'echo > ready; while [ ! -e go ]; do sleep 0.01; done';
    const run = new Lessor(scene, ['run', 'r', '--ttl', '6', '--', 'sh', '-c', script]);
    await until('the command', () => scene.read('ready') !== '');
    await freeze(scene, run);
    const start = performance.now();
    await until('a second', () => performance.now() - start > 1000);
    run.kill('SIGCONT');
    writeFileSync(scene.path('go'), '');
    expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
  });

  it('CM1 the store is cut off: asked to end while the lease holds, gone before anybody else has the run, code 79', async () => {
    await using scene = new Scene();
    const { run, leader, processIds } = await startStubborn(scene, 3);
    const locker = new Database(scene.path('leases.db'));
    locker.exec('BEGIN IMMEDIATE'); // nobody else can write
    try {
      const { expires_at: expiresAt } = locker.prepare('SELECT expires_at FROM lessor_lease').get() as Record<
        string,
        number
      >;
      await until('the end of the command', () => !isRunning(leader));
      expect(scene.askedAt()).toBeLessThan(expiresAt as number);
      expect(scene.lastAliveAt()).toBeLessThan(expiresAt as number);
      expect(processIds.filter(isAlive)).toEqual([]);
    } finally {
      locker.exec('ROLLBACK');
      locker.close();
    }
    const { code, stderr } = await run.ended;
    expect(code).toBe(79);
    expect(stderr).toMatch(/was not renewed .* left to do so\n/);
    expect(stderr).toMatch(/: ending the command\n/);
    expect((await startWitness(scene, 2).ended).code).toBe(0);
    expect(scene.read('token')).toBe('2\n');
  });

  it('CM1 TK9 the run is released by force: the command is told at once and killed soon, code 79, and the record says why', async () => {
    await using scene = new Scene();
    const { run, processIds } = await startStubborn(scene, 3);
    const released = await lessor(scene, ['release', 'r', '--force', '--reason', 'stuck since noon', '--by', 'ops']);
    expect(released).toMatchObject({ code: 0, stderr: '' });
    expect(released.stdout).toMatch(/^Took run r from worker \S+ \(token 1\)\.\n$/);
    const { code, stderr } = await run.ended;
    expect(code).toBe(79);
    expect(stderr).toBe('lessor: Lost the lease on run "r" (token 1): revoked: ending the command\n');
    expect(processIds.filter(isAlive)).toEqual([]);
    const revoked = { by: 'ops', reason: 'stuck since noon', at: expect.any(Number) as number };
    expect(await showRun(scene, 'r')).toMatchObject({ state: 'free', fencingToken: 1, revoked });
    const again = await lessor(scene, ['release', 'r', '--force', '--reason', 'again']);
    expect(again).toEqual({ code: 1, stdout: '', stderr: 'lessor: nobody has run r\n' });
  });

  it('Ctrl-Z stops the command and lessor, and both go on when continued in time', async () => {
    await using scene = new Scene();
    // A shell that is just starting a process counts as waiting for it, not as stopped: this one starts none.
    const script = 'echo $$ > ids; while [ ! -e go ]; do :; done; exit 5';
    const run = new Lessor(scene, ['run', 'r', '--ttl', '20', '--', 'sh', '-c', script]);
    await until('the command', () => scene.processIds('ids').length === 1);
    const [leader] = scene.processIds('ids') as [number];
    scene.trackLeader(leader);
    run.kill('SIGTSTP');
    await until('both to stop', () => stateOf(leader) === 'T' && stateOf(run.process.pid) === 'T');
    writeFileSync(scene.path('go'), '');
    run.kill('SIGCONT');
    const { code, stderr } = await run.ended;
    expect(code).toBe(5);
    expect(stderr).toMatch(/^lessor: stopped: continue within .* s, or the command is ended\n$/);
  });

  it('a command that was stopped with Ctrl-Z and not continued in time is gone before the lease is', async () => {
    await using scene = new Scene();
    const { run, leader } = await startStubborn(scene, 2);
    run.kill('SIGTSTP');
    const next = startWitness(scene, 2);
    expect((await next.ended).code).toBe(0);
    expect(scene.read('alive')).toBe('');
    expect(isRunning(leader)).toBe(false);
    run.kill('SIGCONT');
    expect((await run.ended).code).toBe(79);
  });

  it('TK10 lessor run is killed at random moments: each next one runs in time, alone, with a higher token', async () => {
    await using scene = new Scene();
    const script = `exec 2>/dev/null; ${NOTE_ALIVE}; echo $$ >> ids; echo $LESSOR_FENCING_TOKEN >> tokens; ${WORK}`;
    const rounds = 6;
    for (let round = 1; round <= rounds; round += 1) {
      const run = new Lessor(scene, ['run', 'r', '--ttl', '1', '--', 'sh', '-c', script]);
      const pauseSeconds = Math.random() * 0.8; // before, during and after the acquire and the start of the command
      const start = performance.now();
      await until('the moment', () => performance.now() - start > pauseSeconds * 1000);
      run.kill('SIGKILL');
      await run.ended;
    }
    const last = new Lessor(scene, ['run', 'r', '--ttl', '1', '--', 'sh', '-c', 'echo $LESSOR_FENCING_TOKEN']);
    const start = performance.now();
    const { code, stdout } = await last.ended;
    expect(code).toBe(0);
    expect((performance.now() - start) / 1000).toBeLessThan(1 + 1 + 2); // starting and ending the process included
    expect(scene.read('alive')).toBe('');
    const tokens = [...scene.processIds('tokens'), Number(stdout)];
    expect(tokens).toEqual([...new Set(tokens)].toSorted((a, b) => a - b));
    await until('the end of every command', () => !scene.processIds('ids').some(isAlive));
  });
});
