/**
 * What does the chart cost? `LeaseRegistry` beside what a user would write by hand (a class over two Maps) and beside
 * plain state machine actors under a machine parent, all in this process, in turn, as ratios of medians.
 *
 *   npm run build && node --expose-gc bench/registry.mjs
 */
import { performance } from 'node:perf_hooks';
import { leaseMachine } from 'lessor/machines';
import { LeaseRegistry } from 'lessor';
import { assign, createActor, setup } from 'xstate';

const TTL = 10;

/** The contract by hand: the least that anybody could write. */
class MapRegistry {
  #nextToken = 1;
  #byRun = new Map();
  #byToken = new Map();

  acquire(runId, workerId, now) {
    const current = this.#byRun.get(runId);
    if (current !== undefined && current.expiresAt > now) return null;
    const fencingToken = this.#nextToken++;
    const leaseId = `${runId}:${workerId}:${fencingToken}`;
    const lease = { runId, workerId, leaseId, fencingToken, expiresAt: now + TTL };
    if (current !== undefined) this.#byToken.delete(current.fencingToken);
    this.#byRun.set(runId, lease);
    this.#byToken.set(fencingToken, lease);
    return { ...lease };
  }

  heartbeat(leaseId, fencingToken, now) {
    const lease = this.#byToken.get(fencingToken);
    if (lease === undefined || lease.leaseId !== leaseId || lease.expiresAt <= now) return false;
    lease.expiresAt = now + TTL;
    return true;
  }

  validate(runId, leaseId, fencingToken, now) {
    const lease = this.#byRun.get(runId);
    if (lease === undefined) return false;
    return lease.leaseId === leaseId && lease.fencingToken === fencingToken && lease.expiresAt > now;
  }

  release(leaseId, fencingToken) {
    const lease = this.#byToken.get(fencingToken);
    if (lease === undefined || lease.leaseId !== leaseId) return false;
    this.#byToken.delete(fencingToken);
    return this.#byRun.delete(lease.runId);
  }
}

const parentMachine = setup({ actors: { lease: leaseMachine } }).createMachine({
  context: { leases: {} },
  on: {
    spawn: {
      actions: assign({
        leases: ({ context, event, spawn }) => ({
          ...context.leases,
          [event.runId]: spawn('lease', { id: event.runId, input: { runId: event.runId } }),
        }),
      }),
    },
  },
});

/** One state machine actor per run, spawned by a machine: xstate as its documentation shows it. */
class MachineRegistry {
  #nextToken = 1;
  #parent = createActor(parentMachine).start();
  #byToken = new Map();

  acquire(runId, workerId, now) {
    if (this.#parent.getSnapshot().context.leases[runId] === undefined) this.#parent.send({ type: 'spawn', runId });
    const actor = this.#parent.getSnapshot().context.leases[runId];
    actor.send({ type: 'acquire', workerId, fencingToken: this.#nextToken, now, ttlSeconds: TTL });
    const { lease } = actor.getSnapshot().context;
    if (lease.fencingToken !== this.#nextToken) return null;
    this.#byToken.set(this.#nextToken++, actor);
    return { runId, ...lease };
  }

  heartbeat(leaseId, fencingToken, now) {
    const actor = this.#byToken.get(fencingToken);
    const before = actor.getSnapshot().context.lease;
    actor.send({ type: 'heartbeat', leaseId, fencingToken, now, ttlSeconds: TTL });
    return actor.getSnapshot().context.lease !== before;
  }

  validate(runId, leaseId, fencingToken, now) {
    const lease = this.#parent.getSnapshot().context.leases[runId]?.getSnapshot().context.lease;
    return lease?.leaseId === leaseId && lease.fencingToken === fencingToken && lease.expiresAt > now;
  }

  release(leaseId, fencingToken) {
    const actor = this.#byToken.get(fencingToken);
    actor.send({ type: 'release', leaseId, fencingToken });
    this.#byToken.delete(fencingToken);
    return actor.getSnapshot().value === 'free';
  }
}

/** Every run once: acquire, heartbeat, validate, release. Microseconds a run. */
function cycle(registry, runIds, now) {
  const start = performance.now();
  for (const runId of runIds) {
    const { leaseId, fencingToken } = registry.acquire(runId, 'worker-a', now);
    const good =
      registry.heartbeat(leaseId, fencingToken, now) &&
      registry.validate(runId, leaseId, fencingToken, now) &&
      registry.release(leaseId, fencingToken);
    if (!good) throw new Error(`${runId} went wrong`);
  }
  return ((performance.now() - start) * 1000) / runIds.length;
}

const names = (count, from = 0) => Array.from({ length: count }, (_, index) => `run-${from + index}`);
const median = (values) => values.toSorted((one, other) => one - other)[values.length >> 1];

/** The candidates in turn, so that the machine's moods meet them all alike. */
function compare(title, makers, rounds, measure) {
  const times = makers.map(() => []);
  for (let round = 0; round < rounds; round += 1) {
    makers.forEach((maker, index) => times[index].push(measure(maker, round)));
  }
  const medians = times.map((list) => median(list.slice(rounds >> 2)));
  console.log(`\n${title}`);
  makers.forEach(({ name }, index) => {
    const ratio = medians[makers.findIndex((maker) => maker === LeaseRegistry || maker.name === 'LeaseRegistry')];
    console.log(
      `  ${name.padEnd(16)} ${medians[index].toFixed(2).padStart(9)} us a run   ${(medians[index] / ratio).toFixed(2)}`,
    );
  });
  return medians;
}

const warmed = new Map();
function warm(maker, runIds) {
  const key = `${maker.name} ${runIds.length}`;
  if (!warmed.has(key)) {
    const registry = new maker({ ttlSeconds: TTL });
    for (let index = 0; index < 20; index += 1) cycle(registry, runIds, index);
    warmed.set(key, registry);
  }
  return warmed.get(key);
}

console.log('time in microseconds a run, and as a multiple of LeaseRegistry');
const thousand = names(1000);
const [map, ours] = compare('1,000 warm runs', [MapRegistry, LeaseRegistry], 200, (maker, round) =>
  cycle(warm(maker, thousand), thousand, 100 + round),
);
console.log(`  LeaseRegistry does ${(map / ours).toFixed(2)} of the Map class`);

const [, oursDistinct] = compare('100,000 distinct runs', [MapRegistry, LeaseRegistry], 8, (maker, round) =>
  cycle(new maker({ ttlSeconds: TTL }), names(100_000, round * 100_000), 0),
);
void oursDistinct;

const small = names(300);
const [oursSmall, machines] = compare(
  '300 warm runs, also on plain machine actors',
  [LeaseRegistry, MachineRegistry],
  30,
  (maker, round) => cycle(warm(maker, small), small, 100 + round),
);
console.log(`  LeaseRegistry is ${(machines / oursSmall).toFixed(1)} times as fast as plain machine actors, warm`);
const [oursNew, machinesNew] = compare(
  '1,000 new runs, also on plain machine actors',
  [LeaseRegistry, MachineRegistry],
  8,
  (maker) => cycle(new maker({ ttlSeconds: TTL }), thousand, 0),
);
console.log(`  LeaseRegistry is ${(machinesNew / oursNew).toFixed(1)} times as fast as plain machine actors, spawning`);

/** A new run's first acquire while so many leases are live, in microseconds. */
function spawnCost(maker, live) {
  const registry = new maker({ ttlSeconds: TTL });
  for (const runId of names(live)) registry.acquire(runId, 'worker-a', 0);
  const newcomers = names(5000, live);
  // What the live ones left to collect is not the newcomers' cost.
  globalThis.gc?.();
  const start = performance.now();
  for (const runId of newcomers) registry.acquire(runId, 'worker-a', 0);
  return ((performance.now() - start) * 1000) / newcomers.length;
}

for (const live of [1000, 10_000, 100_000]) {
  compare(`a new run, beside ${live.toLocaleString('en')} live leases`, [MapRegistry, LeaseRegistry], 16, (maker) =>
    spawnCost(maker, live),
  );
}
