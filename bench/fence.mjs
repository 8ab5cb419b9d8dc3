/**
 * What does a fence cost? The same write with and without it, by one worker on one connection, in turn, in one run, as a
 * ratio of medians: 1.00 is free. Extra round trips are in it.
 *
 *   npm run build && node bench/fence.mjs --help
 *
 * The servers are started here, on loopback, and ended, also by Ctrl-C.
 */
import { performance } from 'node:perf_hooks';
import { forEachStore, readCommand } from './command.mjs';
import { inTurn, tell } from './compare.mjs';
import { acquireAnew } from './fence/leases.mjs';
import { openPostgres } from './fence/postgres.mjs';
import { openRedis } from './fence/redis.mjs';
import { openSqlite } from './fence/sqlite.mjs';

const FEW = 5;

const OPENERS = { sqlite: openSqlite, postgres: openPostgres, redis: openRedis };

const { names, values } = readCommand({
  usage: `node bench/fence.mjs [sqlite] [postgres] [redis] [--rounds N] [--no-fsync]

  --rounds N   how often each write is measured, each time over a few leases (2000)
  --no-fsync   takes the disk out, with the fence and without it: what is left is the work of both`,
  stores: Object.keys(OPENERS),
  options: { rounds: { type: 'string', default: '2000' }, 'no-fsync': { type: 'boolean', default: false } },
  isValid: ({ rounds }) => Number.isSafeInteger(Number(rounds)) && Number(rounds) > 0,
});

await forEachStore(names, async (name, onEnd) => {
  const { title, store, leases, writes } = await OPENERS[name]({ fsync: !values['no-fsync'], onEnd });
  for (const { what, fenced, plain, aim, isFirst = false } of writes) {
    const candidates = [
      { name: 'with the fence', write: fenced },
      { name: 'without', write: plain, aim },
    ];
    const next = inFews(leases.length);
    const rates = await inTurn(candidates, Number(values.rounds), async ({ write }) => {
      const few = next();
      if (isFirst) for (const place of few) leases[place] = await acquireAnew(store, leases[place]);
      return writesPerSecond(
        write,
        few.map((place) => leases[place]),
      );
    });
    tell(`${title}: ${what}`, candidates, rates);
  }
});

/** The places of the next few leases, and so on around. The fewer, the more alike the disk is to both writes. */
function inFews(count) {
  let from = 0;
  return () => {
    const few = Array.from({ length: FEW }, (_, index) => from + index);
    from = (from + FEW) % count;
    return few;
  };
}

/** Once under each lease. */
async function writesPerSecond(write, leases) {
  const start = performance.now();
  for (const lease of leases) await write(lease);
  return (leases.length * 1000) / (performance.now() - start);
}
