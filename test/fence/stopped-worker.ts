/** The story that the fence is for, with real processes: a worker is stopped between its check and its write. */
import { expect, it } from 'vitest';
import type { StoredLease } from '../../src/index.ts';
import { until } from '../stores/postgres-fixtures.ts';
import { startWorker, type Way, type Worker } from './worker.ts';

/** How long worker-a's lease lives. */
export const TTL_SECONDS = 0.8;

/** A store, and what the user keeps beside it. */
export interface Place {
  readonly url: string;
  /** A row in each table, or a key, for a new run. */
  addRun(): Promise<string>;
  /** What stands where that way of writing writes. */
  statusOf(way: Way, runId: string): Promise<unknown>;
  /** Until the store's clock has moved. */
  passed(seconds: number): Promise<unknown>;
  /** How a write that begins after the take-over is refused. */
  refusal(way: Way): unknown;
  /** How one is refused that had begun before it, where that differs. */
  lateRefusal?(way: Way): unknown;
}

/** Two workers, and a new run. */
export async function twoWorkers({ url, addRun }: Place) {
  const [a, b, runId] = await Promise.all([startWorker(url), startWorker(url), addRun()]);
  return { a, b, runId };
}

/** Worker-b's lease, as soon as worker-a's has expired. */
export async function takeOver(b: Worker, runId: string): Promise<StoredLease> {
  let next: StoredLease | null = null;
  await until(async () => (next = await b.acquire(runId, 'worker-b', 60)) !== null);
  return next!;
}

/** The same story on each store, for each of the ways to write that it has. */
export function tellsTheStory(ways: readonly Way[], place: () => Place): void {
  const lateRefusal = (way: Way): unknown => (place().lateRefusal ?? place().refusal)(way);

  it.each(ways)(
    'B17 TK2 a worker stopped between its check and its write (%s) is refused after another wrote "done", and "done" stays',
    async (way) => {
      const { a, b, runId } = await twoWorkers(place());
      const lease = (await a.acquire(runId, 'worker-a', TTL_SECONDS))!;
      const stopped = await a.stopBeforeWriting(way, lease, 'late');
      const next = await takeOver(b, runId);
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
      await b.write(way, next, 'done');
      expect((await stopped.continue()).error).toEqual(lateRefusal(way));
      await expect(a.write(way, lease, 'late again')).rejects.toEqual(place().refusal(way));
      expect(await place().statusOf(way, runId)).toBe('done');
      expect(await b.write(way, next, 'done twice')).not.toBe('late');
      expect(await place().statusOf(way, runId)).toBe('done twice');
    },
  );

  it.each(ways)('B18 TK2 it is refused (%s) although the newer worker has written nothing yet', async (way) => {
    const { a, b, runId } = await twoWorkers(place());
    const lease = (await a.acquire(runId, 'worker-a', TTL_SECONDS))!;
    const stopped = await a.stopBeforeWriting(way, lease, 'late');
    await takeOver(b, runId);
    expect((await stopped.continue()).error).toEqual(lateRefusal(way));
    await expect(a.write(way, lease, 'late again')).rejects.toEqual(place().refusal(way));
    expect(await place().statusOf(way, runId)).toBe('new');
  });

  it.each(ways)('B19 it passes (%s) when its lease has expired and nobody took over', async (way) => {
    const a = await startWorker(place().url);
    const runId = await place().addRun();
    const lease = (await a.acquire(runId, 'worker-a', TTL_SECONDS))!;
    const stopped = await a.stopBeforeWriting(way, lease, 'late but alone');
    await place().passed(TTL_SECONDS);
    expect((await stopped.continue()).error).toBeUndefined();
    expect(await place().statusOf(way, runId)).toBe('late but alone');
  });
}

/** What a trigger or a function says, through a client that knows nothing of the library. */
export function lostByMessage(): unknown {
  return expect.objectContaining({ message: expect.stringMatching(/lost the lease/i) });
}
