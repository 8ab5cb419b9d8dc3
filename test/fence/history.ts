/**
 * One random history: four workers acquire one run, write under leases that they may have lost long ago, renew, release and
 * let leases lapse, all at once. Each write appends to what it has read, so that a lost update leaves a gap.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { isLeaseError, type FencedStore, type StoredLease } from '../../src/index.ts';
import { randomOf } from '../support/random.ts';

/** How a lease writes: reads all entries of its run and appends one, in one fenced step. */
export type Append = (lease: StoredLease, entry: Entry, pause: () => Promise<void>) => Promise<void>;

export type Entry = { readonly id: string; readonly token: number; readonly acquisition: string };

export interface HistoryHarness {
  readonly store: FencedStore;
  readonly ttlSeconds: number;
  /** Ends the run's lease by time. */
  lapse(runId: string): Promise<unknown>;
  /** The ways to write, and for each what stands at the end. */
  readonly ways: readonly { readonly append: Append; entries(runId: string): Promise<readonly Entry[]> }[];
}

export interface HistoryCounts {
  grants: number;
  accepted: number;
  lost: number;
  conflicts: number;
}

const WORKERS = ['worker-a', 'worker-b', 'worker-c', 'worker-d'];
const STEPS = 8;

/** Plays the history of that seed and checks it. The seed draws the steps; how they interleave is the machine's. */
export async function playHistory(harness: HistoryHarness, seed: number, counts: HistoryCounts): Promise<void> {
  const runId = `history ${seed} ${randomUUID()}`;
  const accepted = harness.ways.map(() => new Set<string>());
  const random = randomOf(seed);
  await Promise.all(
    WORKERS.map((workerId, index) =>
      work(harness, runId, workerId, randomOf(random() * 2 ** 32 + index), accepted, counts),
    ),
  );
  for (const [index, way] of harness.ways.entries()) check(await way.entries(runId), accepted[index]!);
}

async function work(
  { store, ttlSeconds, lapse, ways }: HistoryHarness,
  runId: string,
  workerId: string,
  random: () => number,
  accepted: readonly Set<string>[],
  counts: HistoryCounts,
): Promise<void> {
  const pause = async (): Promise<void> => {
    for (let turns = Math.floor(random() * 4); turns > 0; turns -= 1) await new Promise(setImmediate);
  };
  // Old ones too: a worker may find out late.
  const leases: StoredLease[] = [];
  for (let step = 0; step < STEPS; step += 1) {
    await pause();
    const what = random();
    const lease = leases[Math.floor(random() ** 2 * leases.length)];
    if (lease === undefined || what < 0.25) {
      const result = await store.acquire({ runId, workerId, ttlSeconds, acquisitionId: randomUUID() });
      if (result.status === 'held') continue;
      counts.grants += 1;
      leases.unshift(result.lease);
    } else if (what < 0.4) await lapse(runId);
    else if (what < 0.45) await store.release(lease);
    else if (what < 0.5) await store.renew([lease], ttlSeconds);
    else {
      const index = Math.floor(random() * ways.length);
      // Two at once are the lease's own affair: one of them may be a conflict.
      const writes = Array.from({ length: random() < 0.3 ? 2 : 1 }, async () => {
        const entry = { id: randomUUID(), token: lease.fencingToken, acquisition: lease.acquisitionId };
        if (await attempt(ways[index]!.append(lease, entry, pause), counts)) accepted[index]!.add(entry.id);
      });
      await Promise.all(writes);
    }
  }
}

async function attempt(write: Promise<void>, counts: HistoryCounts): Promise<boolean> {
  try {
    await write;
    counts.accepted += 1;
    return true;
  } catch (error) {
    if (!isLeaseError(error) || (error.code !== 'LEASE_LOST' && error.code !== 'CONFLICT')) throw error;
    if (error.code === 'CONFLICT') counts.conflicts += 1;
    else counts.lost += 1;
    return false;
  }
}

/** The entries are those of the accepted writes, one by one, and never go back to an older lease. */
function check(entries: readonly Entry[], accepted: ReadonlySet<string>): void {
  expect(new Set(entries.map(({ id }) => id)), 'the writes that stand').toEqual(accepted);
  expect(entries.length, 'each stands once').toBe(accepted.size);
  const tokens = entries.map(({ token }) => token);
  expect(tokens, 'tokens in the order of the writes').toEqual(tokens.toSorted((one, two) => one - two));
  const acquisitions = entries.map(({ acquisition }) => acquisition);
  const turns = acquisitions.filter((acquisition, index) => acquisition !== acquisitions[index - 1]);
  expect(turns.length, 'no older acquisition writes after a newer one').toBe(new Set(acquisitions).size);
}

/** The way of sessions, on every store. */
export function sessionWay(store: FencedStore): HistoryHarness['ways'][number] {
  const entriesOf = async (runId: string): Promise<readonly Entry[]> => {
    const session = await store.session({ workerId: 'reader', runs: [runId], fence: 'none' });
    return ((await session.run(runId).read('entries')) ?? []) as unknown as readonly Entry[];
  };
  return {
    entries: entriesOf,
    append: async (lease, entry, pause) => {
      const { workerId, runId } = lease;
      const session = await store.session({ workerId, runs: [runId], fence: lease });
      const job = session.run(runId);
      const entries = ((await job.read('entries')) ?? []) as unknown as readonly Entry[];
      await pause();
      job.write('entries', [...entries, entry]);
      await session.commit();
    },
  };
}
