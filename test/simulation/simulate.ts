/**
 * Workers with the shipped manager, on machines and ways to the store that fail. Each takes one of a few runs, works for a
 * while and writes under its lease, also when it should have noticed that it has lost it, and again.
 */
import { vi } from 'vitest';
import { isLeaseError } from '../../src/errors.ts';
import type { HeldLease } from '../../src/manager/held-lease.ts';
import { LeaseManager } from '../../src/manager/lease-manager.ts';
import type { DocumentStore } from '../../src/session/documents.ts';
import { openSession } from '../../src/session/session.ts';
import { MemoryStore } from '../../src/stores/memory.ts';
import type { Reacquire } from '../../src/lease.ts';
import { Network, type StoreFault } from './network.ts';
import { Machine, World } from './world.ts';

/** What the managers are told. */
const TTL = 3;
const DRIFT = 0.01;
const RUNS = ['run-1', 'run-2'];
const WORKERS = 4;

export interface Simulation extends StoreFault {
  readonly seed: number;
  /** How long things go wrong, in seconds of the true time. */
  readonly seconds: number;
  /** By how much the workers' clocks may really differ from the store's in rate. @default what the managers count with */
  readonly drift?: number;
  /** Whether writes show their lease. @default true */
  readonly fenced?: boolean;
  /** Two processes may have one worker id, and then take over from each other. @default 'refuse', and ids of their own */
  readonly reacquire?: Reacquire;
}

export interface Figures {
  happened: number;
  grants: number;
  /** Begun while another worker believed. */
  overlaps: number;
  writes: number;
  refused: number;
  /** Accepted after one under a newer lease. */
  stale: number;
  losses: number;
  kills: number;
  /** What ended otherwise than it may. */
  wrong: string[];
}

/** What a run's accepted writes have shown. */
interface Written {
  newest: number;
  last: string;
  readonly ended: Set<string>;
}

export async function simulate(simulation: Simulation): Promise<Figures> {
  const figures: Figures = {
    happened: 0,
    grants: 0,
    overlaps: 0,
    writes: 0,
    refused: 0,
    stale: 0,
    losses: 0,
    kills: 0,
    wrong: [],
  };
  const world = new World(simulation.seed);
  // The managers' jitter comes from the seed, too.
  const random = vi.spyOn(Math, 'random').mockImplementation(() => world.random());
  const store = new MemoryStore({ now: () => world.now });
  const site = new Site(simulation, world, store, figures);
  for (let place = 0; place < WORKERS; place += 1) site.start(place);
  site.trouble();
  await world.run(simulation.seconds);
  await site.calmDown();
  figures.happened = world.happened;
  await store.close();
  random.mockRestore();
  return figures;
}

class Site {
  readonly #simulation: Simulation;
  readonly #world: World;
  readonly #store: MemoryStore;
  readonly #figures: Figures;
  readonly #machines: (Machine | undefined)[] = [];
  readonly #managers = new Map<Machine, LeaseManager>();
  readonly #holding = new Map<HeldLease, Machine>();
  readonly #written = new Map<string, Written>();
  #isCalm = false;
  #isOver = false;

  constructor(simulation: Simulation, world: World, store: MemoryStore, figures: Figures) {
    this.#simulation = simulation;
    this.#world = world;
    this.#store = store;
    this.#figures = figures;
  }

  /** A worker, or the one that follows a dead one. */
  start(place: number): void {
    const { drift = DRIFT, reacquire = 'refuse', answersRepeatsFromMemory = false } = this.#simulation;
    const world = this.#world;
    // The ends are the hardest: the store's clock goes at 1.
    const machine = new Machine(
      world,
      world.pick([1 - drift, 1, 1 / (1 - drift), world.between(1 - drift, 1 / (1 - drift))]),
    );
    const network = new Network({
      world,
      machine,
      store: this.#store,
      ttlSeconds: TTL,
      answersRepeatsFromMemory,
      isCalm: () => this.#isCalm,
      moments: () => this.#moments(),
      // An acquire that comes late takes over from a newer handle of its worker: it is the newest then, once more.
      onGranted: ({ runId, acquisitionId }) => this.#written.get(runId)?.ended.delete(acquisitionId),
    });
    const workerId = reacquire === 'extend' ? `worker-${place % 2}` : undefined;
    const manager = new LeaseManager(network, { ttlSeconds: TTL, drift: DRIFT, clock: machine, workerId });
    this.#machines[place] = machine;
    this.#managers.set(machine, manager);
    void this.#work(machine, manager, network);
  }

  /** Stops, suspends and kills, now and then. */
  trouble(): void {
    const world = this.#world;
    world.after(world.between(0, 2 * TTL), () => {
      if (this.#isCalm) return;
      const place = Math.floor(world.random() * WORKERS);
      const machine = this.#machines[place];
      const what = world.random();
      if (machine !== undefined && what < 0.4) machine.stop(world.between(0, 2 * TTL));
      else if (machine !== undefined && what < 0.6) machine.suspend(world.between(0, 2 * TTL));
      else if (machine !== undefined && what < 0.75) this.#kill(place, machine);
      this.trouble();
    });
  }

  /** Nothing goes wrong any more: every run is taken within a ttl and a poll, and in the end nothing is left behind. */
  async calmDown(): Promise<void> {
    const world = this.#world;
    this.#isCalm = true;
    // What is on its way may come as late as one and a half ttl, and a machine be stopped for two.
    await world.run(world.now + 4 * TTL);
    const grants = this.#figures.grants;
    await world.run(world.now + 3 * TTL);
    if (this.#figures.grants === grants) this.#figures.wrong.push('no run was taken in three quiet ttls');
    this.#isOver = true;
    const open = new Set<LeaseManager>();
    for (const [machine, manager] of this.#managers) {
      if (machine.isDead) continue;
      open.add(manager);
      void manager.close().then(() => open.delete(manager));
    }
    await world.run(world.now + 6 * TTL);
    if (open.size > 0) this.#figures.wrong.push(`${open.size} managers do not close`);
    for (const machine of this.#managers.keys()) {
      if (!machine.isDead && machine.armed > 0) this.#figures.wrong.push(`${machine.armed} timers are left`);
    }
    for (const runId of RUNS) {
      const record = await this.#store.read(runId);
      if (record?.state === 'held') this.#figures.wrong.push(`${runId} is still held`);
    }
  }

  #kill(place: number, machine: Machine): void {
    this.#figures.kills += 1;
    machine.isDead = true;
    this.#machines[place] = undefined;
    for (const [lease, owner] of this.#holding) if (owner === machine) this.#holding.delete(lease);
    this.#world.after(this.#world.between(0, TTL), () => this.start(place));
  }

  /** When what stands at the store expires, and when the holders' deadlines come, as far as anybody can tell. */
  #moments(): number[] {
    const ends = [...this.#holding.keys()].map((lease) => this.#world.now + lease.remainingSeconds());
    return [...ends, this.#world.now + TTL, this.#world.now + TTL * (1 - DRIFT)];
  }

  async #work(machine: Machine, manager: LeaseManager, network: Network): Promise<void> {
    const world = this.#world;
    const { reacquire = 'refuse' } = this.#simulation;
    const sleep = (seconds: number): Promise<void> => new Promise((resolve) => machine.after(seconds, resolve));
    while (!this.#isOver) {
      const options = { waitSeconds: world.between(0, 2 * TTL), reacquire };
      try {
        await manager.hold(world.pick(RUNS), options, async (lease) => {
          this.#begin(lease, machine);
          for (let step = world.between(0, 5); step > 0; step -= 1) {
            await sleep(world.between(0, world.chance(0.7) ? 0.2 : TTL));
            if (world.chance(0.6)) await this.#write(lease, machine, network);
            // Who does not look goes on as if nothing were.
            if (world.chance(0.5)) lease.assertHeld();
          }
          this.#holding.delete(lease);
        });
      } catch (error) {
        this.#judge(error);
      }
      if (!this.#isOver) await sleep(world.between(0, 0.5));
    }
  }

  #begin(lease: HeldLease, machine: Machine): void {
    this.#figures.grants += 1;
    for (const [other, owner] of this.#holding) {
      if (other.runId !== lease.runId || !owner.isRunning) continue;
      if (other.remainingSeconds() > 0) this.#figures.overlaps += 1;
      else this.#holding.delete(other);
    }
    this.#holding.set(lease, machine);
  }

  /** A fenced read-modify-write that is given up after a ttl, though it may still land. */
  async #write(lease: HeldLease, machine: Machine, network: Network): Promise<void> {
    const controller = new AbortController();
    const cancel = machine.after(TTL, () => controller.abort());
    const { signal } = controller;
    const documents: DocumentStore = {
      openDocuments: (request) => network.call({ signal }, () => this.#store.openDocuments(request)),
      commitDocuments: (request) =>
        network.call({ signal }, () => this.#store.commitDocuments(request).then(() => this.#accept(lease))),
    };
    const { runId, workerId } = lease;
    try {
      if (this.#simulation.fenced === false) return await network.call({ signal }, async () => this.#accept(lease));
      const session = await openSession(documents, { workerId, runs: [runId], fence: lease });
      const run = session.run(runId);
      run.write('count', Number((await run.read('count')) ?? 0) + 1);
      await session.commit();
    } catch (error) {
      if (!isLeaseError(error)) throw error;
      if (error.code === 'LEASE_LOST') this.#figures.refused += 1;
    } finally {
      cancel();
    }
  }

  /** Stale is what comes after a newer token, or after another acquisition that was granted after this one. */
  #accept({ runId, fencingToken: token, acquisitionId }: HeldLease): void {
    this.#figures.writes += 1;
    const written = this.#written.get(runId) ?? { newest: 0, last: '', ended: new Set() };
    this.#written.set(runId, written);
    if (token < written.newest || written.ended.has(acquisitionId)) this.#figures.stale += 1;
    if (written.last !== acquisitionId) written.ended.add(written.last);
    written.newest = Math.max(written.newest, token);
    written.last = acquisitionId;
  }

  /** A hold ends by its loss, without a grant, or without an answer. Nothing else may come out of it. */
  #judge(error: unknown): void {
    const code = isLeaseError(error) ? error.code : String(error);
    if (code === 'LEASE_LOST') this.#figures.losses += 1;
    else if (!this.#isOver && !['LEASE_NOT_AVAILABLE', 'STORE_UNAVAILABLE', 'OUTCOME_UNKNOWN'].includes(code)) {
      this.#figures.wrong.push(code);
    }
  }
}
