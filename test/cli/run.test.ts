import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Scene, isAlive, until } from './commands.ts';
import { Lessor, lessor, showRun } from './lessor.ts';

describe('lessor run', () => {
  it('CM2 the command finds its lease in its environment, and stdout is its alone', async () => {
    await using scene = new Scene();
    const print = 'env | grep -E "^(LESSOR_|UNRELATED)" | sort';
    const inherited = {
      LESSOR_FENCING_TOKEN: '999',
      LESSOR_RUN_ID: 'outer',
      LESSOR_ACQUISITION_ID: 'outer',
      UNRELATED: 'kept',
    };
    const args = ['run', 'a:b', '--worker', 'w', '--', 'sh', '-c', print];
    const { code, stdout, stderr } = await lessor(scene, args, inherited);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.trimEnd().split('\n');
    expect(lines[0]).toMatch(/^LESSOR_ACQUISITION_ID=[0-9a-f-]{36}$/);
    expect(lines.slice(1)).toEqual([
      'LESSOR_FENCING_TOKEN=1',
      'LESSOR_LEASE_ID=a:b:w:1',
      'LESSOR_RUN_ID=a:b',
      `LESSOR_STORE=sqlite:${scene.path('leases.db')}`,
      'LESSOR_WORKER_ID=w',
      'UNRELATED=kept',
    ]);
  });

  it('a relative store is the same one for a command in another directory', async () => {
    await using scene = new Scene();
    const args = ['run', 'r', '--store', 'sqlite:./other.db', '--', 'sh', '-c', 'echo "$LESSOR_STORE"'];
    expect((await lessor(scene, args)).stdout).toBe(`sqlite:${scene.path('other.db')}\n`);
  });

  it('CM2 the exit code is the command’s, or 128 and the number of the signal that ended it, and the run is free', async () => {
    await using scene = new Scene();
    const endings = { 'exit 0': 0, 'exit 3': 3, 'exit 255': 255, 'kill -KILL $$': 137, 'kill -TERM $$': 143 };
    for (const [script, expected] of Object.entries(endings)) {
      const { code, stdout, stderr } = await lessor(scene, ['run', 'r', '--', 'sh', '-c', script]);
      expect({ script, code, stdout, stderr }).toEqual({ script, code: expected, stdout: '', stderr: '' });
    }
    expect(await showRun(scene, 'r')).toMatchObject({ state: 'free', fencingToken: 5, fence: 5 });
  });

  it('CM2 a command that cannot be started has its own code, and the run is free', async () => {
    await using scene = new Scene();
    const missing = await lessor(scene, ['run', 'r', '--', './no-such-command']);
    expect(missing).toEqual({ code: 127, stdout: '', stderr: 'lessor: command not found: ./no-such-command\n' });
    writeFileSync(scene.path('plain'), 'text');
    chmodSync(scene.path('plain'), 0o644);
    const plain = await lessor(scene, ['run', 'r', '--', './plain']);
    expect(plain.code).toBe(126);
    expect(plain.stderr).toMatch(/^lessor: cannot start \.\/plain: .*EACCES\n$/);
    expect(await showRun(scene, 'r')).toMatchObject({ state: 'free', fencingToken: 2 });
  });

  it('CM2 HUP, INT, QUIT, TERM, USR1 and USR2 go to the whole group, and the exit code is the command’s', async () => {
    await using scene = new Scene();
    const names = ['HUP', 'INT', 'QUIT', 'TERM', 'USR1', 'USR2'] as const;
    const note = (who: string) =>
      `exec 2>/dev/null; for name in ${names.join(' ')}; do trap "echo ${who} $name >> heard" $name; done; echo ${who} >> ready`;
    const wait = 'while [ ! -e go ]; do sleep 0.01; done; exit 9';
    writeFileSync(scene.path('child.sh'), `${note('child')}\n${wait}\n`);
    writeFileSync(scene.path('leader.sh'), `sh child.sh &\n${note('leader')}\n${wait}\n`);
    const run = new Lessor(scene, ['run', 'r', '--', 'sh', 'leader.sh']);
    await until('both processes', () => scene.read('ready').trim().split('\n').length === 2);
    for (const name of names) {
      run.kill(`SIG${name}`);
      await until(`SIG${name} in the leader`, () => scene.read('heard').includes(`leader ${name}\n`));
      // A shell lets what it starts in the background ignore these two.
      if (name === 'INT' || name === 'QUIT') continue;
      await until(`SIG${name} in the child`, () => scene.read('heard').includes(`child ${name}\n`));
    }
    writeFileSync(scene.path('go'), '');
    expect(await run.ended).toEqual({ code: 9, stdout: '', stderr: '' });
    expect(scene.read('heard').trim().split('\n')).toHaveLength(2 * names.length - 2);
    expect(await showRun(scene, 'r')).toMatchObject({ state: 'free' });
  });

  it('CM2 nothing outlives the command: what it left behind is ended before the run is free', async () => {
    await using scene = new Scene();
    const script =
      'sh -c "trap \\"\\" TERM; echo \\$\\$ > ids; while :; do sleep 0.01; done" & while [ ! -s ids ]; do :; done';
    const { code } = await lessor(scene, ['run', 'r', '--', 'sh', '-c', `${script}; exit 4`]);
    expect(code).toBe(4);
    const [left] = scene.processIds('ids') as [number];
    expect(isAlive(left)).toBe(false);
    expect(await showRun(scene, 'r')).toMatchObject({ state: 'free' });
  });

  it('the second waits for the first, and its token is higher', async () => {
    await using scene = new Scene();
    const script =
      'echo $LESSOR_FENCING_TOKEN start >> log; while [ ! -e go ]; do sleep 0.01; done; echo $LESSOR_FENCING_TOKEN end >> log';
    const first = new Lessor(scene, ['run', 'r', '--', 'sh', '-c', script]);
    await until('the first', () => scene.read('log') !== '');
    const second = new Lessor(scene, ['run', 'r', '--', 'sh', '-c', script]);
    await until('the second to wait', () => second.stderr.includes('waiting'));
    writeFileSync(scene.path('go'), '');
    expect((await first.ended).code).toBe(0);
    const { code, stderr } = await second.ended;
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /^lessor: run r is held by worker \S+ \(token 1\), for \S+ s unless renewed; waiting\nlessor: got run r after .* s \(token 2\)\n$/,
    );
    expect(scene.read('log')).toBe('1 start\n1 end\n2 start\n2 end\n');
  });

  it('CM2 with --try, or when --wait is over, a held run is exit code 75 and the command is not started', async () => {
    await using scene = new Scene();
    const first = new Lessor(scene, ['run', 'r', '--worker', 'first', '--', 'sh', '-c', 'echo > ready; sleep 100']);
    await until('the first', () => scene.read('ready') !== '');
    const tried = await lessor(scene, ['run', 'r', '--try', '--', 'sh', '-c', 'echo > second']);
    expect(tried).toMatchObject({ code: 75, stdout: '' });
    expect(tried.stderr).toMatch(/^lessor: run r is held by worker first \(token 1\), for .* s unless renewed\n$/);
    const waited = await lessor(scene, ['run', 'r', '--wait', '0.3', '--', 'sh', '-c', 'echo > second']);
    expect(waited.code).toBe(75);
    expect(waited.stderr).toMatch(/waiting up to 0\.3 s\nlessor: run r is still held by worker first after .* s\n$/);
    expect(scene.read('second')).toBe('');
    first.kill('SIGTERM');
    expect((await first.ended).code).toBe(143);
  });

  it('two commands under one worker name exclude each other', async () => {
    await using scene = new Scene();
    const first = new Lessor(scene, ['run', 'r', '--worker', 'w', '--', 'sh', '-c', 'echo > ready; sleep 100']);
    await until('the first', () => scene.read('ready') !== '');
    expect((await lessor(scene, ['run', 'r', '--worker', 'w', '--try', '--', 'true'])).code).toBe(75);
    first.kill('SIGTERM');
    await first.ended;
  });

  it('a signal while it waits ends it with 128 and its number, and leaves nothing held', async () => {
    await using scene = new Scene();
    const first = new Lessor(scene, ['run', 'r', '--', 'sh', '-c', 'echo > ready; sleep 100']);
    await until('the first', () => scene.read('ready') !== '');
    const second = new Lessor(scene, ['run', 'r', '--', 'sh', '-c', 'echo > second']);
    await until('the second to wait', () => second.stderr.includes('waiting'));
    second.kill('SIGINT');
    expect((await second.ended).code).toBe(130);
    expect(scene.read('second')).toBe('');
    first.kill('SIGTERM');
    await first.ended;
    expect(await showRun(scene, 'r')).toMatchObject({ state: 'free', fence: 1 });
  });

  it('CM2 wrong arguments are exit code 64, with what was expected and where to read on', async () => {
    await using scene = new Scene();
    const { code, stdout, stderr } = await lessor(scene, ['run', 'r', 'echo', 'hi']);
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toBe(
      'lessor: Expected -- between RUN and the command, as in: lessor run RUN -- COMMAND.\nSee: lessor run --help\n',
    );
    expect((await lessor(scene, ['run', 'r', '--store', 'gopher://x', '--', 'true'])).code).toBe(64);
  });

  it('CM2 a store that cannot be asked is exit code 69, and the command is not started', async () => {
    await using scene = new Scene();
    mkdirSync(scene.path('folder'));
    writeFileSync(scene.path('text'), 'this is no database, whatever its name says. '.repeat(50));
    for (const store of ['sqlite:folder', 'sqlite:text', 'sqlite:text/leases.db']) {
      const { code, stdout, stderr } = await lessor(scene, ['run', 'r', '--store', store, '--', 'touch', 'started']);
      expect({ store, code, stdout }).toEqual({ store, code: 69, stdout: '' });
      expect(stderr).toMatch(/^lessor: /);
    }
  });

  it('without any setting leases are kept in the state directory of the user, which only they can read', async () => {
    await using scene = new Scene();
    const env = { LESSOR_STORE: '', HOME: scene.folder, XDG_STATE_HOME: '' };
    const { code, stdout } = await lessor(scene, ['run', 'r', '--', 'sh', '-c', 'echo "$LESSOR_STORE"'], env);
    expect(code).toBe(0);
    const file = /^sqlite:(.*\/lessor\/leases\.db)\n$/.exec(stdout)?.[1] ?? '';
    expect(file.startsWith(scene.folder)).toBe(true);
    expect(statSync(dirname(file)).mode & 0o777).toBe(0o700);
    const again = await lessor(scene, ['run', 'r', '--', 'sh', '-c', 'echo $LESSOR_FENCING_TOKEN'], env);
    expect(again.stdout).toBe('2\n');
  });
});
