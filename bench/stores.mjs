/**
 * What does a lease cost on each store? Acquire and release of `lessor` beside what a user would write or pick, with 1 and
 * with 32 clients in this process, in turn, as ratios of medians (above 1: `lessor` is faster). And 10,000 leases renewed in
 * one call beside one call each.
 *
 *   npm run build && node bench/stores.mjs --help
 *
 * The servers are started here, on loopback, and ended, also by Ctrl-C. The packages beside which lessor is measured are
 * installed on demand, in the versions of `stores/packages.mjs`, into `node_modules/.cache/lessor-bench`: they are no
 * dependencies of this package.
 */
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { forEachStore, readCommand } from './command.mjs';
import { inTurn, median, ratePerSecond, roundsIn, tell } from './compare.mjs';
import { openPostgres } from './stores/postgres.mjs';
import { openRedis } from './stores/redis.mjs';
import { openSqlite } from './stores/sqlite.mjs';

const OPENERS = { sqlite: openSqlite, postgres: openPostgres, redis: openRedis };
const CROWD = 32;
const MANY = 10_000;
const RENEW_TTL_SECONDS = 3600;

const { names, values } = readCommand({
  usage: `node bench/stores.mjs [sqlite] [postgres] [redis] [--seconds S] [--no-fsync]

  --seconds S  how long each candidate is measured for each line (5)
  --no-fsync   takes the disk out, for lessor and the others alike: what is left is each one's own work`,
  stores: Object.keys(OPENERS),
  options: { seconds: { type: 'string', default: '5' }, 'no-fsync': { type: 'boolean', default: false } },
  isValid: ({ seconds }) => Number(seconds) > 0,
});
const rounds = roundsIn(Number(values.seconds));

await forEachStore(names, measure);

async function measure(name, onEnd) {
  const {
    title,
    store,
    others,
    renewAim,
    quickly = (work) => work(),
  } = await OPENERS[name]({ fsync: !values['no-fsync'], onEnd });
  const candidates = [{ name: 'lessor', once: (runId) => acquireAndRelease(store, runId) }, ...others];
  for (const clients of [1, CROWD]) {
    const rates = await inTurn(candidates, rounds, ({ once }) => ratePerSecond(once, clients));
    tell(`${title}: acquire and release, ${clients} client${clients > 1 ? 's' : ''}`, candidates, rates);
  }
  await measureRenewals(title, store, renewAim, quickly);
}

async function acquireAndRelease(store, runId) {
  const acquisitionId = randomUUID();
  const result = await store.acquire({ runId, workerId: 'worker-a', acquisitionId, ttlSeconds: 30 });
  if (result.status !== 'granted' || result.extended) throw new Error(`${runId} was not granted: ${result.status}`);
  if (!(await store.release(result.lease))) throw new Error(`${runId} was not released`);
}

/** Leases a second. */
async function measureRenewals(title, store, aim, quickly) {
  const leases = await quickly(() => acquireMany(store));
  let next = 0;
  const renewOne = () => renewAll(store, [leases[(next += 1) % MANY]]);
  const candidates = [
    { name: 'one call', measure: () => timed(() => renewAll(store, leases)) },
    { name: 'one call each', aim, measure: () => ratePerSecond(renewOne, 1) },
    { name: `one call each, ${CROWD} at a time`, measure: () => ratePerSecond(renewOne, CROWD) },
  ];
  const rates = await inTurn(candidates, rounds, (candidate) => candidate.measure());
  tell(`${title}: ${MANY} leases renewed (${(MANY / median(rates[0])).toFixed(2)} s in one call)`, candidates, rates);
}

async function acquireMany(store) {
  const leases = [];
  for (let first = 0; first < MANY; first += 500) {
    const batch = Array.from({ length: 500 }, async (_, index) => {
      const runId = `many-${first + index}`;
      const request = { runId, workerId: 'worker-a', acquisitionId: randomUUID(), ttlSeconds: RENEW_TTL_SECONDS };
      return (await store.acquire(request)).lease;
    });
    leases.push(...(await Promise.all(batch)));
  }
  return leases;
}

async function renewAll(store, leases) {
  const results = await store.renew(leases, RENEW_TTL_SECONDS);
  if (!results.every(({ status }) => status === 'renewed')) throw new Error('A lease was lost');
}

async function timed(renew) {
  const start = performance.now();
  await renew();
  return (MANY * 1000) / (performance.now() - start);
}
