/** The rules of fenced sessions, as sentences, for every store that offers them. Titles name their statements. */
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { FencedStore, Json, Session, SessionOptions, StoredLease } from '../../src/index.ts';

export interface SessionHarness {
  readonly store: FencedStore;
  readonly ttlSeconds: number;
  /** Jumps the store's clock, or waits until it has moved. */
  advance(seconds: number): Promise<void>;
}

export type SessionRule = (harness: SessionHarness) => Promise<void>;

async function acquire(store: FencedStore, runId: string, workerId: string, ttlSeconds: number): Promise<StoredLease> {
  const result = await store.acquire({ runId, workerId, ttlSeconds, acquisitionId: randomUUID() });
  if (result.status !== 'granted') throw new Error(`${runId} is held by ${result.workerId}`);
  return result.lease;
}

/** Worker-a's lease, expired, and worker-b's, which took over. */
async function takeOver({ store, ttlSeconds, advance }: SessionHarness, runId: string) {
  const late = await acquire(store, runId, 'worker-a', ttlSeconds);
  await advance(ttlSeconds);
  const next = await acquire(store, runId, 'worker-b', 60);
  return { late, next };
}

function open(store: FencedStore, lease: StoredLease, more: Partial<SessionOptions> = {}): Promise<Session> {
  return store.session({ workerId: lease.workerId, runs: [lease.runId], fence: lease, ...more });
}

async function write(store: FencedStore, lease: StoredLease, status: string): Promise<void> {
  const session = await open(store, lease);
  session.run(lease.runId).write('status', status);
  await session.commit();
}

async function status(store: FencedStore, runId: string): Promise<unknown> {
  const session = await store.session({ workerId: 'reader', runs: [runId], fence: 'none' });
  return session.run(runId).read('status');
}

const lost = (reason: string) => expect.objectContaining({ code: 'LEASE_LOST', retryable: false, reason });
const conflict = expect.objectContaining({ code: 'CONFLICT', retryable: true });
const run = () => `run ${randomUUID()}`;

export const sessionRules: Record<string, SessionRule> = {
  'B16 a run that was just leased for the first time has an empty document, and keeps what was committed': async ({
    store,
  }) => {
    const lease = await acquire(store, run(), 'worker-a', 60);
    const session = await open(store, lease);
    const job = session.run(lease.runId);
    expect([job.version, await job.read('status'), await job.readAll()]).toEqual([0, undefined, {}]);
    job.write('status', 'running');
    job.write('rows', [1, { two: null }]);
    expect(await job.read('status')).toBe('running');
    await session.commit();
    const again = (await open(store, lease)).run(lease.runId);
    expect([again.version, await again.readAll()]).toEqual([1, { status: 'running', rows: [1, { two: null }] }]);
  },

  'B19 TK7 the owner’s second write passes, also after a renewal': async ({ store }) => {
    const lease = await acquire(store, run(), 'worker-a', 60);
    await write(store, lease, 'one');
    await write(store, lease, 'two');
    await store.renew([lease], 60);
    await write(store, lease, 'three');
    expect(await status(store, lease.runId)).toBe('three');
  },

  'B17 TK2 a late worker’s commit is refused once another has written': async (harness) => {
    const { store, ttlSeconds, advance } = harness;
    const late = await acquire(store, run(), 'worker-a', ttlSeconds);
    const session = await open(store, late);
    session.run(late.runId).write('status', 'running');
    await advance(ttlSeconds);
    const next = await acquire(store, late.runId, 'worker-b', 60);
    await write(store, next, 'done');
    await expect(session.commit()).rejects.toEqual(lost('superseded'));
    expect(await status(store, late.runId)).toBe('done');
  },

  'B18 TK2 a late worker’s commit is refused although the newer one has written nothing': async (harness) => {
    const { store, ttlSeconds, advance } = harness;
    const late = await acquire(store, run(), 'worker-a', ttlSeconds);
    await write(store, late, 'running');
    const session = await open(store, late);
    session.run(late.runId).write('status', 'late');
    await advance(ttlSeconds);
    await acquire(store, late.runId, 'worker-b', 60);
    await expect(session.commit()).rejects.toEqual(lost('superseded'));
    await expect(open(store, late)).rejects.toEqual(lost('superseded'));
    expect(await status(store, late.runId)).toBe('running');
  },

  'B19 expiry alone refuses no commit': async ({ store, ttlSeconds, advance }) => {
    const lease = await acquire(store, run(), 'worker-a', ttlSeconds);
    await advance(ttlSeconds);
    await write(store, lease, 'late but alone');
    expect(await status(store, lease.runId)).toBe('late but alone');
  },

  'B19 a released lease does not pass, nor a revoked one': async ({ store }) => {
    const released = await acquire(store, run(), 'worker-a', 60);
    await store.release(released);
    await expect(write(store, released, 'x')).rejects.toEqual(lost('released'));
    const revoked = await acquire(store, run(), 'worker-a', 60);
    const session = await open(store, revoked);
    session.run(revoked.runId).write('status', 'x');
    await store.revoke(revoked.runId, { by: 'operator', reason: 'stuck' });
    await expect(session.commit()).rejects.toEqual(lost('revoked'));
    expect([await status(store, released.runId), await status(store, revoked.runId)]).toEqual([undefined, undefined]);
  },

  'B4 TK8 a second handle of the same worker cuts off the first, and passes itself': async ({ store }) => {
    const first = await acquire(store, run(), 'worker-a', 60);
    await write(store, first, 'first');
    const second = await acquire(store, first.runId, 'worker-a', 60);
    expect(second.fencingToken).toBe(first.fencingToken);
    await expect(write(store, first, 'again')).rejects.toEqual(lost('superseded'));
    await write(store, second, 'second');
    expect(await status(store, first.runId)).toBe('second');
  },

  'B19 a token of another run, from the future, or of another worker is refused': async ({ store }) => {
    const lease = await acquire(store, run(), 'worker-a', 60);
    const other = await acquire(store, run(), 'worker-a', 60);
    for (const fence of [
      { ...lease, fencingToken: lease.fencingToken + 1_000_000 },
      { ...lease, workerId: 'worker-b' },
      { ...lease, acquisitionId: other.acquisitionId },
    ]) {
      const session = store.session({ workerId: fence.workerId, runs: [lease.runId], fence });
      await expect(session).rejects.toEqual(expect.objectContaining({ code: 'LEASE_LOST' }));
    }
    const never = { ...lease, runId: run() };
    await expect(open(store, never)).rejects.toEqual(lost('unknown'));
  },

  'B19 a session may be given the token alone, and no fence at all only for runs that were never leased': async ({
    store,
  }) => {
    const lease = await acquire(store, run(), 'worker-a', 60);
    const byToken = await open(store, lease, { fence: lease.fencingToken });
    byToken.run(lease.runId).write('status', 'by token');
    await byToken.commit();
    const unfenced = { workerId: 'worker-a', runs: [lease.runId] };
    await expect(store.session(unfenced)).rejects.toEqual(expect.objectContaining({ code: 'UNFENCED_RUN' }));
    await expect(store.session({ ...unfenced, runs: [run(), lease.runId] })).rejects.toEqual(
      expect.objectContaining({ code: 'UNFENCED_RUN' }),
    );
    const meant = await store.session({ ...unfenced, fence: 'none' });
    meant.run(lease.runId).write('status', 'meant');
    await meant.commit();
    const free = await store.session({ workerId: 'worker-a', runs: [run()] });
    await free.commit();
  },

  'B19 an unfenced session does not commit to a run that was leased meanwhile': async ({ store }) => {
    const runId = run();
    const session = await store.session({ workerId: 'worker-a', runs: [runId] });
    session.run(runId).write('status', 'unfenced');
    await acquire(store, runId, 'worker-b', 60);
    await expect(session.commit()).rejects.toEqual(expect.objectContaining({ code: 'UNFENCED_RUN' }));
    expect(await status(store, runId)).toBeUndefined();
  },

  'B24 serializable refuses when anything read has changed': async ({ store }) => {
    const lease = await acquire(store, run(), 'worker-a', 60);
    const session = await open(store, lease);
    await session.run(lease.runId).read('status');
    await write(store, lease, 'changed');
    await expect(session.commit()).rejects.toEqual(conflict);
  },

  'B24 of two commits from the same reading one passes': async ({ store }) => {
    const lease = await acquire(store, run(), 'worker-a', 60);
    const sessions = await Promise.all([1, 2, 3, 4].map(() => open(store, lease)));
    sessions.forEach((session, index) => session.run(lease.runId).write('status', index));
    const results = await Promise.allSettled(sessions.map((session) => session.commit()));
    expect(results.filter(({ status: settled }) => settled === 'fulfilled').length).toBe(1);
    for (const result of results) if (result.status === 'rejected') expect(result.reason).toEqual(conflict);
  },

  'a session that was rolled back or committed is over': async ({ store }) => {
    const lease = await acquire(store, run(), 'worker-a', 60);
    const session = await open(store, lease);
    session.run(lease.runId).write('status', 'dropped');
    session.rollback();
    session.rollback();
    await expect(session.commit()).rejects.toThrow('rolled back');
    const committed = await open(store, lease);
    await committed.commit();
    await expect(committed.commit()).rejects.toThrow('has had its commit');
    expect(await status(store, lease.runId)).toBeUndefined();
  },

  'I a document holds any JSON exactly, and refuses what JSON would bend': async ({ store }) => {
    const lease = await acquire(store, run(), 'worker-a', 60);
    const value = { nul: '\0', quote: '"\\', emoji: '😀', nested: [[], {}, 1e21, -1.5, true], __proto: { a: 1 } };
    const session = await open(store, lease);
    const job = session.run(lease.runId);
    job.write('__proto__', value);
    job.write('', 'empty name');
    for (const wrong of [undefined, Number.NaN, Infinity, 1n, new Date(), () => 1, { deep: [new Map()] }]) {
      expect(() => job.write('wrong', wrong as never)).toThrow(TypeError);
    }
    await session.commit();
    const again = (await open(store, lease)).run(lease.runId);
    expect(await again.read('__proto__')).toEqual(value);
    expect(await again.read('')).toBe('empty name');
    expect(await again.read('wrong')).toBeUndefined();
  },

  'TK11 a task that two workers start is done once a tick, since each reads "done" under its own fence': async ({
    store,
  }) => {
    const runId = run();
    let done = 0;
    const tick = async (workerId: string) => {
      const lease = await acquire(store, runId, workerId, 60);
      const session = await open(store, lease);
      if ((await session.run(runId).read('done')) !== true) {
        done += 1;
        session.run(runId).write('done', true);
        await session.commit();
      }
      await store.release(lease);
    };
    await tick('worker-a');
    await tick('worker-b');
    expect(done).toBe(1);
  },

  'B16 a refused access leaves fence and data as they were': async (harness) => {
    const { late, next } = await takeOver(harness, run());
    const { store } = harness;
    await write(store, next, 'done');
    await expect(write(store, late, 'late')).rejects.toEqual(lost('superseded'));
    expect(await store.currentFence(next.runId)).toBe(next.fencingToken);
    await write(store, next, 'done again');
    expect(await status(store, next.runId)).toBe('done again');
  },
};

/** Of stores that commit several runs in one step, whatever their names. */
export const severalRunsRules: Record<string, SessionRule> = {
  'B24 TK13 a session over several runs is all or nothing': async (harness) => {
    const { store, ttlSeconds, advance } = harness;
    const [x, y] = [await acquire(store, run(), 'worker-a', 60), await acquire(store, run(), 'worker-a', ttlSeconds)];
    const session = await open(store, x, { runs: [x.runId, y.runId], fence: [x, y] });
    session.run(x.runId).write('status', 'half');
    session.run(y.runId).write('status', 'half');
    await advance(ttlSeconds);
    await acquire(store, y.runId, 'worker-b', 60);
    await expect(session.commit()).rejects.toEqual(lost('superseded'));
    expect([await status(store, x.runId), await status(store, y.runId)]).toEqual([undefined, undefined]);
  },

  'B24 snapshot refuses only when anything written has changed': async ({ store }) => {
    const lease = await acquire(store, run(), 'worker-a', 60);
    const other = await acquire(store, run(), 'worker-a', 60);
    const both = { runs: [lease.runId, other.runId], fence: [lease, other], isolation: 'snapshot' } as const;
    const session = await open(store, lease, both);
    await session.run(lease.runId).read('status');
    session.run(other.runId).write('status', 'written');
    await write(store, lease, 'changed');
    await session.commit();
    const second = await open(store, other, { isolation: 'snapshot' });
    second.run(other.runId).write('status', 'mine');
    await write(store, other, 'theirs');
    await expect(second.commit()).rejects.toEqual(conflict);
    expect(await status(store, other.runId)).toBe('theirs');
  },

  'TK13 sessions over [x, y] and [y, x] that commit at once all settle, without a deadlock': async ({ store }) => {
    const [x, y] = [await acquire(store, run(), 'worker-a', 60), await acquire(store, run(), 'worker-a', 60)];
    let committed = 0;
    const move = async (runs: readonly string[]) => {
      for (let round = 0; round < 50; round += 1) {
        const session = await open(store, x, { runs, fence: [x, y] });
        const [from, to] = runs.map((runId) => session.run(runId));
        from!.write('count', Number((await from!.read('count')) ?? 0) - 1);
        to!.write('count', Number((await to!.read('count')) ?? 0) + 1);
        await session.commit().then(
          () => (committed += 1),
          (error: unknown) => expect(error).toEqual(conflict),
        );
      }
    };
    await Promise.all([move([x.runId, y.runId]), move([y.runId, x.runId])]);
    expect(committed).toBeGreaterThanOrEqual(50);
    const end = await store.session({ workerId: 'reader', runs: [x.runId, y.runId], fence: 'none' });
    const counts = await Promise.all([x, y].map(({ runId }) => end.run(runId).read('count')));
    expect(Number(counts[0]) + Number(counts[1])).toBe(0);
  },

  'I a session under no lease at all is refused, and says how to mean it': async ({ store }) => {
    const options = { workerId: 'worker-a', runs: [run()], fence: [] };
    await expect(store.session(options)).rejects.toThrow(RangeError);
    await expect(store.session(options)).rejects.toThrow("'none'");
  },

  'a document may be nested as deep as JSON can be read': async ({ store }) => {
    const lease = await acquire(store, run(), 'worker-a', 60);
    const deep = JSON.parse(`${'['.repeat(1500)}${']'.repeat(1500)}`) as Json;
    const session = await open(store, lease);
    session.run(lease.runId).write('deep', deep);
    await session.commit();
    const read = await (await open(store, lease)).run(lease.runId).read('deep');
    expect(JSON.stringify(read)).toBe(JSON.stringify(deep));
  },

  'NM5 a session over no run, or over one run twice, is refused before any I/O': async ({ store }) => {
    const options = { workerId: 'worker-a', fence: 'none' } as const;
    await expect(store.session({ ...options, runs: [] })).rejects.toThrow(RangeError);
    await expect(store.session({ ...options, runs: ['d', 'd'] })).rejects.toThrow(RangeError);
  },
};
