/** A commit over two runs whose connection is cut in the middle, and the same commit from a second session after it. */
import { expect } from 'vitest';
import { ConflictError, type FencedStore, type Session, type StoredLease } from '../../src/index.ts';
import { acquire } from '../fence/leases.ts';
import type { Proxy, Way } from '../services/proxy.ts';

export interface CutScene {
  readonly proxy: Proxy;
  /** On connections that nothing cuts. */
  readonly store: FencedStore;
  /** The name of a new run. All are of one length where they are sent. */
  newRun(): string;
  /** Another one, behind the proxy, on connections of its own. */
  openBehind(): Promise<FencedStore>;
}

/** Two runs of one worker, in the order in which a commit takes them. */
export interface Accounts {
  readonly from: StoredLease;
  readonly to: StoredLease;
}

export interface CutCommit {
  /** What the commit that was cut rejected with, or undefined. */
  readonly error: unknown;
  readonly wasApplied: boolean;
}

export async function openAccounts({ store, newRun }: CutScene): Promise<Accounts> {
  const [first, second] = [newRun(), newRun()].sort();
  return { from: await acquire(store, first!, 'worker-a'), to: await acquire(store, second!, 'worker-a') };
}

/** A session that has read both accounts, and is to move one from the one to the other. */
export async function openMove(store: FencedStore, { from, to }: Accounts): Promise<Session> {
  const runs = [to.runId, from.runId];
  const session = await store.session({ workerId: 'worker-a', runs, fence: [from, to] });
  for (const [{ runId }, change] of [[from, -1] as const, [to, 1] as const]) {
    const run = session.run(runId);
    run.write('count', Number((await run.read('count')) ?? 0) + change);
  }
  return session;
}

/**
 * Commits while the connection is cut, and then what was read before the cut from another session. That one is refused as a
 * conflict exactly when the first had been applied, so that the move is made once, whatever the first was told.
 */
export async function commitWhileCut(scene: CutScene, cut: () => unknown): Promise<CutCommit> {
  const { store, proxy } = scene;
  const accounts = await openAccounts(scene);
  await using behind = await scene.openBehind();
  const session = await openMove(behind, accounts);
  const repeat = await openMove(store, accounts);
  proxy.set('pass');
  await cut();
  const error = await failureOf(session.commit());
  const repeated = await failureOf(repeat.commit());
  proxy.set('pass');
  if (repeated !== undefined) expect(repeated).toBeInstanceOf(ConflictError);
  await expectMovedOnce(store, accounts);
  await expect(session.commit()).rejects.toThrow('open another one');
  const wasApplied = repeated !== undefined;
  expectHonest(error, wasApplied);
  return { error, wasApplied };
}

/** Both runs were written, and each of them once. */
async function expectMovedOnce(store: FencedStore, { from, to }: Accounts): Promise<void> {
  const runs = [from.runId, to.runId];
  const reader = await store.session({ workerId: 'reader', runs, fence: 'none' });
  const counts = await Promise.all(runs.map((runId) => reader.run(runId).read('count')));
  expect([...counts, ...runs.map((runId) => reader.run(runId).version)]).toEqual([-1, 1, 1, 1]);
}

/** A commit that was answered took effect, one that was unavailable did not, and of one that is unknown it is not told. */
function expectHonest(error: unknown, wasApplied: boolean): void {
  const { code } = (error ?? { code: 'COMMITTED' }) as { readonly code?: unknown };
  expect(code).toBeOneOf(['COMMITTED', 'STORE_UNAVAILABLE', 'OUTCOME_UNKNOWN']);
  if (code !== 'OUTCOME_UNKNOWN') expect(wasApplied).toBe(code === 'COMMITTED');
}

export async function failureOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    (error: unknown) => error ?? new Error('Rejected with nothing'),
  );
}

/** How many bytes go that way in such a commit. It is the first on its connection, as in every `commitWhileCut`. */
export async function bytesOfCommit(scene: CutScene, way: Way): Promise<number> {
  await using behind = await scene.openBehind();
  const session = await openMove(behind, await openAccounts(scene));
  scene.proxy.set('pass');
  await session.commit();
  return scene.proxy.passed()[way];
}

/** Some 25 places in so many bytes, the first and the last few of them one by one. The end itself is none. */
export function placesIn(bytes: number): number[] {
  const step = Math.max(1, Math.floor(bytes / 16));
  const places = Array.from({ length: bytes }, (_, place) => place);
  return places.filter((place) => place % step === 0 || place === 1 || place >= bytes - 6);
}
