import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createActor, setup, toPromise } from 'xstate';
import type { FromHoldWork } from '../../src/index.ts';
import { fromHold, LeaseManager, MemoryStore } from '../../src/index.ts';
import { gate } from './bench.ts';

const input = { runId: 'job-42' };

/** A user's machine: works under a lease, and ends in a state that says how it went. */
function machineOf<Result>(leases: LeaseManager, work: (given: FromHoldWork<typeof input>) => Promise<Result>) {
  return setup({ actors: { job: fromHold(leases, work) } }).createMachine({
    initial: 'working',
    states: {
      working: {
        invoke: {
          id: 'job',
          src: 'job',
          input,
          onDone: [
            { guard: ({ event }) => event.output.status === 'done', target: 'finished' },
            { guard: ({ event }) => event.output.status === 'lost', target: 'lost' },
            { target: 'refused' },
          ],
          onError: 'failed',
        },
        on: { cancel: 'cancelled' },
      },
      finished: { type: 'final' },
      lost: { type: 'final' },
      refused: { type: 'final' },
      failed: { type: 'final' },
      cancelled: { type: 'final' },
    },
  });
}

async function endOf(leases: LeaseManager, work: (given: FromHoldWork<typeof input>) => Promise<unknown>) {
  const actor = createActor(machineOf(leases, work)).start();
  await toPromise(actor);
  return actor.getSnapshot().value;
}

describe('a hold inside a machine of the user’s own', () => {
  it('is done with the result, and the run is free again', async () => {
    await using store = new MemoryStore();
    await using leases = new LeaseManager(store);
    let seen: string | undefined;
    expect(await endOf(leases, async ({ lease }) => (seen = lease.runId))).toBe('finished');
    expect(seen).toBe('job-42');
    expect((await store.read('job-42'))?.state).toBe('free');
  });

  it('ends as refused when another worker has the run', async () => {
    await using store = new MemoryStore();
    await store.acquire({ runId: 'job-42', workerId: 'worker-b', acquisitionId: 'b', ttlSeconds: 60 });
    await using leases = new LeaseManager(store);
    expect(await endOf(leases, async () => expect.unreachable())).toBe('refused');
  });

  it('ends as lost when the lease ended first, although the work returned', async () => {
    let seconds = 0;
    await using store = new MemoryStore({ now: () => seconds });
    await using leases = new LeaseManager(store, { ttlSeconds: 1.5 });
    const end = endOf(leases, async ({ signal }) => {
      seconds += 2;
      while (!signal.aborted) await sleep(10);
      return 'late';
    });
    expect(await end).toBe('lost');
  });

  it('ends as failed with the work’s own error', async () => {
    await using store = new MemoryStore();
    await using leases = new LeaseManager(store);
    expect(await endOf(leases, () => Promise.reject(new Error('the work’s own')))).toBe('failed');
  });

  it('ends as failed when the work itself was refused another run, or lost one', async () => {
    await using store = new MemoryStore();
    await store.acquire({ runId: 'job-43', workerId: 'worker-b', acquisitionId: 'b', ttlSeconds: 60 });
    await using leases = new LeaseManager(store);
    const refused = async () => void (await leases.acquire('job-43'));
    expect(await endOf(leases, refused)).toBe('failed');
    const lost = async () => {
      const other = await leases.acquire('job-44');
      await other.release();
      other.assertHeld();
    };
    expect(await endOf(leases, lost)).toBe('failed');
  });

  it('ends as lost when a fence tells the work of the loss before any renewal does', async () => {
    await using store = new MemoryStore();
    await using leases = new LeaseManager(store);
    const end = endOf(leases, async ({ lease }) => {
      await store.revoke('job-42', { by: 'operator', reason: 'stuck' });
      const session = await store.session({ workerId: lease.workerId, runs: ['job-42'], fence: lease });
      await session.commit();
    });
    expect(await end).toBe('lost');
  });

  it('C11 is refused at once while the work of a stopped actor settles, and holds the run afterwards', async () => {
    await using store = new MemoryStore();
    await using leases = new LeaseManager(store);
    let settle: () => void = () => undefined;
    const settling = new Promise<void>((resolve) => (settle = resolve));
    const actor = createActor(machineOf(leases, () => settling)).start();
    while ((await store.read('job-42')) === null) await sleep(5);
    actor.stop();
    expect(await endOf(leases, async () => expect.unreachable())).toBe('refused');
    settle();
    while ((await store.read('job-42'))?.state !== 'free') await sleep(5);
    await sleep(0);
    expect(await endOf(leases, async () => 'again')).toBe('finished');
  });

  it('aborts the work when the machine leaves the state, and frees the run once the work has settled', async () => {
    await using store = new MemoryStore();
    await using leases = new LeaseManager(store);
    let reached: () => void = () => undefined;
    const working = new Promise<void>((resolve) => (reached = resolve));
    let settled: () => void = () => undefined;
    const stopped = new Promise<void>((resolve) => (settled = resolve));
    const machine = machineOf(leases, async ({ signal }) => {
      reached();
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      settled();
    });
    const actor = createActor(machine).start();
    await working;
    actor.send({ type: 'cancel' });
    await stopped;
    while ((await store.read('job-42'))?.state !== 'free') await sleep(5);
    expect(actor.getSnapshot().value).toBe('cancelled');
  });

  for (const [what, end] of [
    ['the loss of its lease', (store: MemoryStore) => store.revoke('job-42', { by: 'operator', reason: 'stuck' })],
    ['the end of its actor', (_: MemoryStore, stop: () => void) => stop()],
  ] as const) {
    it(`a listener of the work’s signal that throws at ${what} costs a warning, and no process`, async () => {
      await using store = new MemoryStore();
      await using leases = new LeaseManager(store, { ttlSeconds: 1.5 });
      const warnings: string[] = [];
      const note = ({ message }: Error): void => void warnings.push(message);
      process.on('warning', note);
      const working = gate();
      const stopped = gate();
      const machine = machineOf(leases, ({ signal }) => {
        signal.addEventListener('abort', () => {
          stopped.open();
          throw new Error('of a careless listener');
        });
        working.open();
        return stopped.opened;
      });
      const actor = createActor(machine).start();
      await working.opened;
      await end(store, () => actor.send({ type: 'cancel' }));
      await stopped.opened;
      await sleep(0);
      process.off('warning', note);
      expect(warnings.join()).toContain('of a careless listener');
    });
  }

  it('the work’s signal has the reason of the one that aborted first, and follows neither once the work has settled', async () => {
    await using store = new MemoryStore();
    await using leases = new LeaseManager(store, { ttlSeconds: 1.5 });
    const followed: AbortSignal[] = [];
    const observed: Pick<LeaseManager, 'hold'> = {
      hold: (runId, options, work) => {
        followed.push(options.signal!);
        return leases.hold(runId, options, work);
      },
    };
    const job = fromHold(observed, async ({ lease, signal }) => {
      followed.push(lease.signal);
      await store.revoke('job-42', { by: 'operator', reason: 'stuck' });
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      expect(signal.reason).toBe(lease.loss);
    });
    const output = await toPromise(createActor(job, { input }).start());
    expect(output.status).toBe('lost');
    expect(followed.map((signal) => getEventListeners(signal, 'abort').length)).toEqual([0, 0]);
  });
});
