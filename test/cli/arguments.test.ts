import { describe, expect, it } from 'vitest';
import type { Invocation } from '../../src/cli/arguments.ts';
import { parseInvocation } from '../../src/cli/arguments.ts';
import { UsageError } from '../../src/cli/usage.ts';

function refusal(args: readonly string[]): UsageError {
  try {
    parseInvocation(args);
  } catch (error) {
    if (error instanceof UsageError) return error;
    throw error;
  }
  throw new Error(`Taken: ${args.join(' ')}`);
}

describe('arguments', () => {
  it('everything after -- is the command, options and a second -- included', () => {
    expect(parseInvocation(['run', 'r', '--', 'grep', '--help', '--', '-v'])).toEqual({
      name: 'run',
      runId: 'r',
      command: ['grep', '--help', '--', '-v'],
      store: undefined,
      ttlSeconds: 30,
      waitSeconds: Infinity,
      workerId: undefined,
      graceSeconds: undefined,
    });
  });

  it('the options of run are seconds and names, on either side of RUN', () => {
    const args = ['run', '--ttl', '1.5', 'r', '--wait=.5', '--worker', 'w', '--grace', '0', '--store', 's:', '--', 'c'];
    expect(parseInvocation(args)).toEqual({
      name: 'run',
      runId: 'r',
      command: ['c'],
      store: 's:',
      ttlSeconds: 1.5,
      waitSeconds: 0.5,
      workerId: 'w',
      graceSeconds: 0,
    });
  });

  it('--try is a wait of 0 seconds', () => {
    expect(parseInvocation(['run', 'r', '--try', '--', 'c'])).toMatchObject({ waitSeconds: 0 });
  });

  it('a run may have any name, and nothing is trimmed', () => {
    for (const runId of ['__proto__', '../x', '{tag}', ' a ', 'a:b', '*']) {
      expect(parseInvocation(['show', runId])).toMatchObject({ runId });
    }
    expect(parseInvocation(['show', '--', '--json'])).toMatchObject({ runId: '--json', json: false });
  });

  const good: ReadonlyArray<readonly [readonly string[], Partial<Invocation>]> = [
    [['list'], { name: 'list', json: false, state: undefined, workerId: undefined, prefix: undefined }],
    [['list', '--json', '--state', 'held', '--worker', 'w', '--prefix', 'p'], { name: 'list', state: 'held' }],
    [['show', 'r', '--json'], { name: 'show', runId: 'r', json: true }],
    [['release', 'r', '--force', '--reason', 'stuck'], { name: 'release', reason: 'stuck', by: undefined }],
    [['watch', 'a', 'b', 'a', '--json'], { name: 'watch', runIds: ['a', 'b'], json: true, store: undefined }],
    [['scenarios'], { name: 'scenarios', format: 'json' }],
    [['scenarios', '--format', 'markdown'], { name: 'scenarios', format: 'markdown' }],
    [['--help'], { name: 'help', topic: 'lessor' }],
    [['help', 'run'], { name: 'help', topic: 'run' }],
    [['run', '--help'], { name: 'help', topic: 'run' }],
    [['list', '-h'], { name: 'help', topic: 'list' }],
    [['--version'], { name: 'version' }],
  ];
  it.each(good)('%j is understood', (args, expected) => {
    expect(parseInvocation(args)).toMatchObject(expected);
  });

  const bad: ReadonlyArray<readonly [readonly string[], RegExp]> = [
    [[], /Expected a command/],
    [['rnu'], /Expected a command \(run, list, show, release, watch, scenarios, migrate or fence-table\), got "rnu"/],
    [['lessor'], /got "lessor"/],
    [['run'], /Expected RUN/],
    [['run', 'r'], /Expected a command after --/],
    [['run', 'r', '--'], /Expected a command after --/],
    [['run', '--', 'c'], /Expected RUN/],
    [['run', 'r', 'echo', 'hi'], /Expected -- between RUN and the command/],
    [['run', 'r', 's', '--', 'c'], /Expected one RUN, got also "s"/],
    [['run', '', '--', 'c'], /Expected RUN not to be empty/],
    [['run', 'é'.repeat(513), '--', 'c'], /Expected RUN to have at most 1024 bytes/],
    [['run', 'r', '--try', '--wait', '3', '--', 'c'], /Expected --wait or --try, got both/],
    [['run', 'r', '--ttl', '0', '--', 'c'], /Expected --ttl to be 1 to 86400 seconds, got 0/],
    [['run', 'r', '--ttl', '86401', '--', 'c'], /got 86401/],
    [['run', 'r', '--ttl', '1e3', '--', 'c'], /Expected --ttl to be a number of seconds.*"1e3"/],
    [['run', 'r', '--ttl', '5s', '--', 'c'], /got "5s"/],
    [['run', 'r', '--ttl', '', '--', 'c'], /got ""/],
    [['run', 'r', '--wait=-1', '--', 'c'], /Expected --wait to be a number of seconds/],
    [
      ['run', 'r', '--ttl', '4', '--grace', '3', '--', 'c'],
      /Expected --grace to be at most half of --ttl \(2\), got 3/,
    ],
    [['run', 'r', '--worker', '', '--', 'c'], /Expected --worker not to be empty/],
    [['run', 'r', '--json', '--', 'c'], /Unknown option '--json'/],
    [['run', 'r', '--ttl', '--', 'c'], /--ttl/],
    [['list', 'r'], /Expected no argument, got "r"/],
    [['list', '--state', 'lost'], /Expected --state to be 'free' or 'held' or 'expired'/],
    [['watch'], /Expected RUN/],
    [['watch', 'a', ''], /Expected RUN not to be empty/],
    [['scenarios', '--format', 'yaml'], /Expected --format to be 'json' or 'markdown' or 'schema', got 'yaml'/],
    [['scenarios', 'json'], /Expected no argument, got "json"/],
    [['show'], /Expected RUN/],
    [['show', 'a', 'b'], /got also "b"/],
    [['release', 'r', '--reason', 'x'], /Expected --force/],
    [['release', 'r', '--force'], /Expected --reason/],
    [['release', 'r', '--force', '--reason', ''], /Expected --reason/],
  ];
  it.each(bad)('%j is refused, with what was expected', (args, message) => {
    expect(refusal(args).message).toMatch(message);
  });

  it('a refusal points to the help of its own command', () => {
    expect(refusal(['show']).topic).toBe('show');
    expect(refusal(['run', 'r', '--nonsense', '--', 'c']).topic).toBe('run');
    expect(refusal(['what']).topic).toBe('lessor');
  });
});
