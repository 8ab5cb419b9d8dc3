/** The example of generated tests as it stands, under Vitest here, and under Node's runner in a process of its own. */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FAULT = 'after start, wait, wait, rival, finish: expected stopped, and it is finished';

interface Snapshot {
  readonly upload: { readonly value: string };
  readonly lease: { readonly value: string };
}

interface Example {
  readonly paths: () => readonly (readonly string[])[];
  readonly initial: Snapshot;
  readonly happen: (before: Snapshot, event: { readonly type: string }) => Snapshot;
  readonly play: (path: readonly string[], implementation: unknown) => void;
  readonly Uploader: unknown;
  readonly HastyUploader: unknown;
}

const files = ['model.js', 'play.js', 'uploader.js'];
const modules = files.map((file) => import(new URL(`../../examples/model-based/${file}`, import.meta.url).href));
const example = Object.assign({}, ...(await Promise.all(modules))) as Example;
const paths = example.paths();

describe('a protocol of a user, composed with the chart of a lease', () => {
  it.each(paths.map((path) => [path.join(', '), path] as const))('is kept on the path %s', (_title, path) => {
    example.play(path, example.Uploader);
  });

  it('has 82 edges, and each is the end of a path of its own', () => {
    expect(paths).toHaveLength(82);
    expect(new Set(paths.map(String)).size).toBe(82);
  });

  it('has every transition of both charts on its paths', () => {
    const walked = { upload: new Set<string>(), lease: new Set<string>() };
    for (const path of paths) {
      path.reduce((before, type) => {
        const after = example.happen(before, { type });
        for (const chart of ['upload', 'lease'] as const) {
          walked[chart].add(`${before[chart].value} ${type} ${after[chart].value}`);
        }
        return after;
      }, example.initial);
    }
    for (const transition of UPLOAD_TRANSITIONS) expect(walked.upload).toContain(transition);
    for (const transition of LEASE_TRANSITIONS) expect(walked.lease).toContain(transition);
  });

  it('finds the planted fault, and names the path to it', () => {
    const failures = paths.flatMap((path) => {
      try {
        example.play(path, example.HastyUploader);
        return [];
      } catch (error) {
        return [(error as Error).message.split('\n')[0]];
      }
    });
    expect(failures[0]).toBe(FAULT);
    expect(failures).toHaveLength(4);
  });

  it('is tested under the runner of Node as well', { timeout: 60_000 }, async () => {
    // Node's runner would report to this one, were it told that it runs inside a test.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const args = ['--test', '--test-reporter=tap', 'examples/model-based/'];
    const node = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = new Promise((resolve) => node.on('close', resolve));
    const output = await text(node.stdout);
    expect(await ended).toBe(0);
    expect(output).toContain('# pass 83\n');
    expect(output).toContain(`Found ${FAULT}`);
  });
});

const UPLOAD_TRANSITIONS = [
  'idle start uploading',
  'idle start idle',
  'uploading part uploading',
  'uploading part stopped',
  'uploading finish finished',
  'uploading finish stopped',
  'stopped start uploading',
  'stopped start stopped',
];

const LEASE_TRANSITIONS = [
  'free start held',
  'free rival held',
  'held rival held',
  'held part held',
  'held part expired',
  'held finish free',
  'held look held',
  'held look expired',
  'expired start held',
  'expired rival held',
  'expired part expired',
  'expired finish free',
];
