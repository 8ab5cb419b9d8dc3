import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createActor } from 'xstate';
import { describe, expect, it } from 'vitest';
import type { LeaseContext, LeaseEvent } from '../../machines/lease.machine.ts';
import { leaseGuards, leaseMachine, leaseUpdates } from '../../machines/lease.machine.ts';
import type { ChartLease } from '../../machines/lease.rules.ts';
import type { LeaseState } from '../../machines/lease.table.ts';
import { rowFor } from '../../machines/lease.table.ts';
import { everyStep, walkedMachine } from './lease-walk.ts';

/** Granted at 0 for 10 seconds. */
const lease: ChartLease = {
  workerId: 'worker-a',
  leaseId: 'run:worker-a:1',
  fencingToken: 1,
  expiresAt: 10,
  acquisitionId: undefined,
};
const claim = { leaseId: 'run:worker-a:1', fencingToken: 1 };
const acquire = (workerId: string, now: number) =>
  ({ type: 'acquire', workerId, fencingToken: 2, reacquire: 'refuse', now, ttlSeconds: 10 }) as const;
const heartbeat = (now: number) => ({ type: 'heartbeat', ...claim, now, ttlSeconds: 10 }) as const;
const granted = (workerId: string, fencingToken: number, expiresAt: number): ChartLease => ({
  workerId,
  leaseId: `run:${workerId}:${fencingToken}`,
  fencingToken,
  expiresAt,
  acquisitionId: undefined,
});

type Case = readonly [rule: string, from: LeaseState, event: LeaseEvent, to: LeaseState, after: ChartLease | null];

const RULES: Record<string, Case> = {
  'R1 a free run is granted': ['R1', 'free', acquire('worker-a', 3), 'held', granted('worker-a', 2, 13)],
  'R2 at expiry another worker takes over': ['R2', 'held', acquire('worker-b', 10), 'held', granted('worker-b', 2, 20)],
  'R2 at expiry its own worker gets a new token': [
    'R2',
    'held',
    { ...acquire('worker-a', 10), reacquire: 'extend' },
    'held',
    granted('worker-a', 2, 20),
  ],
  'R3 the same worker extends its live lease, when it asks for that': [
    'R3',
    'held',
    { ...acquire('worker-a', 9), reacquire: 'extend' },
    'held',
    { ...lease, expiresAt: 19 },
  ],
  'R4 a heartbeat at expiry is too late': ['R4', 'held', heartbeat(10), 'expired', lease],
  'R5 a heartbeat extends': ['R5', 'held', heartbeat(4), 'held', { ...lease, expiresAt: 14 }],
  'R6 a release frees the run': ['R6', 'held', { type: 'release', ...claim }, 'free', null],
  'R7 the ttl passes, inclusive': ['R7', 'held', { type: 'expire', now: 10 }, 'expired', lease],
  'R8 an expired run is taken over': ['R8', 'expired', acquire('worker-b', 11), 'held', granted('worker-b', 2, 21)],
  'R9 a late release frees the run, while nobody took over': [
    'R9',
    'expired',
    { type: 'release', ...claim },
    'free',
    null,
  ],
};

/** Anything else changes nothing. */
const NOTHING: Record<string, readonly [from: LeaseState, event: LeaseEvent]> = {
  'a heartbeat of a free run': ['free', heartbeat(0)],
  'a release of a free run': ['free', { type: 'release', ...claim }],
  'the time, told to a free run': ['free', { type: 'expire', now: 99 }],
  'an acquire of a live run by another worker': ['held', { ...acquire('worker-b', 9), reacquire: 'extend' }],
  'an acquire of a live run by its own worker': ['held', acquire('worker-a', 9)],
  'a heartbeat with another token': ['held', { ...heartbeat(4), fencingToken: 2 }],
  'a heartbeat with another lease id': ['held', { ...heartbeat(4), leaseId: 'run:worker-b:1' }],
  'a heartbeat with an acquisition id that the lease does not have': ['held', { ...heartbeat(4), acquisitionId: 'x' }],
  'a release with another token': ['held', { type: 'release', ...claim, fencingToken: 2 }],
  'the time just below expiry': ['held', { type: 'expire', now: 9.999 }],
  'a heartbeat of an expired lease, even one that says an earlier time': ['expired', heartbeat(4)],
  'a release of an expired lease by another': ['expired', { type: 'release', ...claim, leaseId: 'run:worker-b:1' }],
  'the time, told to an expired run': ['expired', { type: 'expire', now: 11 }],
};

describe('the lease machine', () => {
  it.each(Object.entries(RULES))('%s', (_title, [rule, from, event, to, after]) => {
    const before: LeaseContext = { runId: 'run', lease: from === 'free' ? null : lease };
    expect(rowFor(from, before, event)?.rule).toBe(rule);
    expect(send(from, before, event)).toEqual({ value: to, context: { runId: 'run', lease: after } });
  });

  it.each(Object.entries(NOTHING))('changes nothing on %s', (_title, [from, event]) => {
    const before: LeaseContext = { runId: 'run', lease: from === 'free' ? null : lease };
    expect(rowFor(from, before, event)).toBeUndefined();
    expect(send(from, before, event)).toEqual({ value: from, context: before });
  });

  it('reaches each guard, with both answers, and each action', () => {
    const { machine, answers } = walkedMachine();
    for (const { snapshot, event } of everyStep()) step(machine, snapshot.value, snapshot.context, event);
    const expected = [
      ...Object.keys(leaseGuards).flatMap((guard) => [`${guard} false`, `${guard} true`]),
      ...Object.keys(leaseUpdates),
    ];
    expect([...answers].toSorted()).toEqual(expected.toSorted());
  });

  it('starts free and plain, also without input, and its snapshots survive JSON', () => {
    const actor = createActor(leaseMachine, { input: undefined }).start();
    actor.send(acquire('worker-a', 0));
    const persisted = JSON.parse(JSON.stringify(actor.getPersistedSnapshot())) as never;
    const restored = createActor(leaseMachine, { input: undefined, snapshot: persisted }).start();
    restored.send({ type: 'expire', now: 10 });
    expect(restored.getSnapshot().value).toBe('expired');
  });

  it('runs under plain node, which loads another build of xstate', async () => {
    const module = fileURLToPath(new URL('../../dist/machines/lease.machine.js', import.meta.url));
    const program = `
      import { createActor } from 'xstate';
      import { leaseMachine } from ${JSON.stringify(module)};
      const actor = createActor(leaseMachine, { input: { runId: 'run' } }).start();
      actor.send(${JSON.stringify(acquire('worker-a', 0))});
      actor.send(${JSON.stringify({ ...heartbeat(10), leaseId: 'run:worker-a:2', fencingToken: 2 })});
      console.log(actor.getSnapshot().value);`;
    const args = ['--input-type=module', '--eval', program];
    const { stdout } = await promisify(execFile)(process.execPath, args, {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
    });
    expect(stdout.trim()).toBe('expired');
  });
});

function send(value: LeaseState, context: LeaseContext, event: LeaseEvent): { value: string; context: LeaseContext } {
  return step(leaseMachine, value, context, event);
}

function step(machine: typeof leaseMachine, value: LeaseState, context: LeaseContext, event: LeaseEvent) {
  const actor = createActor(machine, {
    input: undefined,
    snapshot: machine.resolveState({ value, context }),
  }).start();
  actor.send(event);
  const { value: after, context: next } = actor.getSnapshot();
  return { value: after, context: next };
}
