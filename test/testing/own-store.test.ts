import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { storeRules } from '../../src/testing/store-suite.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

it("a user's own store passes the kit under another test runner", { timeout: 60_000 }, async () => {
  const args = ['--test', '--test-reporter=tap', 'examples/own-store/'];
  // Node's runner would report to this one, were it told that it runs inside a test.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const node = spawn(process.execPath, args, { cwd: ROOT, env });
  const ended = new Promise<number | null>((resolve) => node.on('close', resolve));
  const [stdout, stderr] = await Promise.all([text(node.stdout), text(node.stderr)]);
  expect(stdout.split('\n').filter((line) => /^\s*not ok/.test(line))).toEqual([]);
  expect(await ended).toBe(0);
  expect(stderr).toBe('');
  const count = (kind: string) => Number(new RegExp(`^# ${kind} (\\d+)$`, 'm').exec(stdout)?.[1]);
  expect(count('skipped')).toBe(6);
  expect(count('pass')).toBe(storeRules().length + 1 - count('skipped'));
});
