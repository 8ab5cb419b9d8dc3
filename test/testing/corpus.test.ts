import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { corpusSchema } from '../../src/testing/corpus-schema.ts';
import { corpus, corpusMarkdown } from '../../src/testing/corpus.ts';
import { violations } from './json-schema.ts';

const EXAMPLE = fileURLToPath(new URL('../../examples/python-replay', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'lessor-replay-'));
afterAll(() => rmSync(folder, { recursive: true }));

const all = [...corpus().registry, ...corpus().store];
const steps = all.flatMap((scenario) => scenario.steps);

describe('the corpus', () => {
  it('is plain JSON of the form that its schema describes', () => {
    const json: unknown = JSON.parse(JSON.stringify(corpus()));
    expect(json).toEqual(corpus());
    expect(violations(json, corpusSchema)).toEqual([]);
  });

  it('has a schema that refuses what has another form', () => {
    const { registry } = corpus();
    const [first] = registry;
    const wrong = [
      { ...corpus(), version: 2 },
      { ...corpus(), store: undefined },
      { ...corpus(), registry: [{ ...first, rule: 'R10' }] },
      { ...corpus(), registry: [{ ...first, steps: [{ call: 'steal' }] }] },
      { ...corpus(), registry: [{ ...first, steps: [{ ...first!.steps[0], expect: { answer: 'held' } }] }] },
    ];
    for (const value of wrong) expect(violations(JSON.parse(JSON.stringify(value)), corpusSchema)).not.toEqual([]);
  });

  it('has its schema written down in a file, for other languages', () => {
    const file = readFileSync(join(EXAMPLE, 'corpus.schema.json'), 'utf8');
    expect(JSON.parse(file)).toEqual(corpusSchema);
  });

  it('has a form for people, with every scenario and every step', () => {
    const markdown = corpusMarkdown();
    for (const { id, title } of all) expect(markdown).toContain(`### ${id}: ${title}`);
    expect(markdown.match(/^\d+\. /gm)).toHaveLength(steps.length);
    expect(markdown).not.toContain('undefined');
  });
});

describe('the Python example', () => {
  it('agrees with the corpus on every step', { timeout: 60_000 }, async () => {
    const { code, stdout, stderr } = await replay(EXAMPLE);
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual({ scenarios: all.length, steps: steps.length, disagreements: 0 });
    expect(code).toBe(0);
  });

  it.each([
    ['expiry is exclusive', 'lease.expires_at > now:', 'lease.expires_at >= now:'],
    ['a release forgets the fence', 'del self.leases[run_id]', 'del self.leases[run_id], self.fences[run_id]'],
    ['the acquisition id is not compared', '(worker_id, token, acquisition)', '(worker_id, token, lease.acquisition)'],
  ])('disagrees when %s', { timeout: 60_000 }, async (_what, right, wrong) => {
    cpSync(EXAMPLE, folder, { recursive: true });
    const registry = join(folder, 'registry.py');
    const source = readFileSync(registry, 'utf8');
    expect(source).toContain(right);
    writeFileSync(registry, source.replace(right, wrong));
    const { code, stdout } = await replay(folder);
    expect(JSON.parse(stdout).disagreements).toBeGreaterThan(0);
    expect(code).toBe(1);
  });
});

async function replay(where: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const python = spawn('python3', ['-B', 'replay.py'], { cwd: where });
  const ended = new Promise<number | null>((resolve, reject) => python.on('close', resolve).on('error', reject));
  python.stdin.end(JSON.stringify(corpus()));
  const [stdout, stderr, code] = await Promise.all([text(python.stdout), text(python.stderr), ended]);
  return { code, stdout, stderr };
}
