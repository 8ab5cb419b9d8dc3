/** The program of docs/embedding.md that keeps a registry in a snapshot: each step in a process of its own. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { transformSync } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { documentSnippets, ROOT } from '../support/snippets.ts';

const run = promisify(execFile);

let folder: string;

/** The document's code, run as it stands where lessor is installed. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lessor-embedding-'));
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  symlinkSync(ROOT, join(modules, 'lessor'));
  symlinkSync(join(ROOT, 'node_modules/xstate'), join(modules, 'xstate'));
  const program = documentSnippets().find(
    ({ where, code }) => where.startsWith('docs/embedding.md') && code.includes('orchestrator.json'),
  );
  if (program === undefined) throw new Error('docs/embedding.md shows no program that keeps a snapshot');
  writeFileSync(join(folder, 'program.mjs'), transformSync(program.code, { loader: 'ts' }).code);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** One step in a new process: what the registry answered. */
async function step(event: object): Promise<Record<string, unknown>> {
  const { stdout } = await run(process.execPath, ['program.mjs', JSON.stringify(event)], { cwd: folder });
  return JSON.parse(stdout) as Record<string, unknown>;
}

const offer = (jobId: string, workerId: string, now: number) => step({ type: 'job.offer', jobId, workerId, now });
const heartbeat = (leaseId: string, fencingToken: number, now: number) =>
  step({ type: 'worker.heartbeat', leaseId, fencingToken, now });

describe('a registry inside a machine, persisted, its process ended, restored in a new one', () => {
  it('A13 live leases stay live and are renewed, expired ones are taken over, and the token counter goes on', async () => {
    expect(await offer('job-1', 'worker-a', 100)).toMatchObject({ type: 'lease.granted', lease: { fencingToken: 1 } });
    expect(await offer('job-2', 'worker-b', 103)).toMatchObject({ type: 'lease.granted', lease: { fencingToken: 2 } });
    expect(await offer('job-1', 'worker-b', 105)).toMatchObject({
      type: 'lease.refused',
      lease: { leaseId: 'job-1:worker-a:1', expiresAt: 110 },
    });
    expect(await heartbeat('job-2:worker-b:2', 2, 109)).toMatchObject({
      type: 'lease.renewed',
      lease: { fencingToken: 2, expiresAt: 119 },
    });
    expect(await offer('job-1', 'worker-b', 110)).toMatchObject({
      type: 'lease.granted',
      lease: { fencingToken: 3, expiresAt: 120 },
      previous: { workerId: 'worker-a', fencingToken: 1 },
    });
    expect(await heartbeat('job-1:worker-a:1', 1, 111)).toMatchObject({ type: 'lease.invalid' });
    // A clock that went back while no process ran un-expires nothing, and counts as the latest that was seen.
    expect(await offer('job-3', 'worker-c', 50)).toMatchObject({ lease: { fencingToken: 4, expiresAt: 121 } });
    const file = JSON.parse(readFileSync(join(folder, 'orchestrator.json'), 'utf8')) as {
      children: { registry: { snapshot: { record: { nextToken: number; leases: object[] } } } };
    };
    expect(file.children.registry.snapshot.record).toMatchObject({
      nextToken: 5,
      leases: expect.objectContaining({ length: 3 }) as object[],
    });
  });
});
