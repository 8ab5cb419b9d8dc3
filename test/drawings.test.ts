/** The drawings are those of the machines as they stand, and can be read. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { leaseMachine } from '../machines/lease.machine.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const drawings = readdirSync(join(ROOT, 'machines')).filter((name) => name.endsWith('.svg'));

const states = leaseMachine.config.states as Record<string, { on: Record<string, Transition | Transition[]> }>;

interface Transition {
  readonly guard?: string;
  readonly actions?: string;
  readonly meta: { readonly rule: string };
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

describe('the drawings', () => {
  it('are up to date: otherwise `npm run draw` draws them anew', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['scripts/draw.mjs', '--check'], { cwd: ROOT });
    expect(stdout).toBe('Every drawing is up to date.\n');
  });

  it('show the lease, the registry and the keeper', () => {
    expect(drawings).toEqual(['keeper.svg', 'lease.svg', 'registry.svg']);
  });

  it('show every state, event, guard, action and rule of the lease machine by name', () => {
    const text = readFileSync(join(ROOT, 'machines/lease.svg'), 'utf8').replaceAll(/<[^>]+>/g, ' ');
    const names = Object.values(states).flatMap(({ on }) =>
      Object.entries(on).flatMap(([event, transitions]) =>
        [transitions].flat().flatMap((of) => [event, ...namesOf(of)]),
      ),
    );
    const words = new Set(text.split(/[^A-Za-z0-9]+/));
    expect([...Object.keys(states), ...names].filter((name) => !words.has(name))).toEqual([]);
  });

  it.each(drawings)('%s has no label on top of another or of a state', (name) => {
    const svg = readFileSync(join(ROOT, 'machines', name), 'utf8');
    const labels = boxes(svg, 'pill');
    expect(labels.length).toBeGreaterThan(0);
    const others = [...labels, ...boxes(svg, 'state')];
    const clashes = labels.flatMap((label) => others.filter((other) => other !== label && overlap(label, other)));
    expect(clashes).toEqual([]);
  });
});

function namesOf({ guard, actions, meta }: Transition): string[] {
  return [guard, actions, meta.rule].filter((name) => name !== undefined);
}

function boxes(svg: string, kind: string): Box[] {
  const pattern = new RegExp(`<rect class="${kind}" x="([^"]+)" y="([^"]+)" width="([^"]+)" height="([^"]+)"`, 'g');
  return [...svg.matchAll(pattern)].map((found) => {
    const [x = NaN, y = NaN, width = NaN, height = NaN] = found.slice(1).map(Number);
    return { x, y, width, height };
  });
}

function overlap(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}
