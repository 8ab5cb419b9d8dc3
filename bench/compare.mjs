/** Candidates in turn, a short slice each, so that the machine's moods meet them all alike; told as ratios of medians. */
import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers/promises';

/** Short, so that a busy machine disturbs some rounds and not the medians. */
const SLICE_SECONDS = 0.05;
/** The first rounds, while code is being compiled and statements prepared, are not counted. */
const WARMING_SHARE = 0.1;

export const median = (values) => quantile(values, 0.5);

/**
 * How often a second so many clients, each after the other's fashion but on runs of its own, get through `once`.
 *
 * @param once - called with a name that no other client uses at that time. Must reject when it did not do its work.
 */
export async function ratePerSecond(once, clients, seconds = SLICE_SECONDS) {
  const start = performance.now();
  const end = start + seconds * 1000;
  let count = 0;
  const client = async (_, index) => {
    for (let turn = 0; performance.now() < end; turn += 1) {
      await once(`job-${index}-${turn % 100}`);
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return (count * 1000) / (performance.now() - start);
}

/** As many rounds as give each candidate so many seconds in all. */
export const roundsIn = (seconds) => Math.max(3, Math.round(seconds / SLICE_SECONDS));

/** Measures each candidate in so many rounds. Rates by candidate, round by round. */
export async function inTurn(candidates, rounds, measure) {
  const rates = candidates.map(() => []);
  const warming = Math.ceil(rounds * WARMING_SHARE);
  for (let round = -warming; round < rounds; round += 1) {
    for (let place = 0; place < candidates.length; place += 1) {
      // Another one begins each round, so that none always follows the same neighbour.
      const index = (warming + round + place) % candidates.length;
      const rate = await measure(candidates[index]);
      // A driver without a promise of its own would let no signal be heard until the last round.
      await setImmediate();
      if (round >= 0) rates[index].push(rate);
    }
  }
  return rates;
}

/**
 * Prints each candidate's median, and how the first compares: the ratio of medians, the middle half of the rounds' own
 * ratios, and whether it is what was aimed at.
 */
export function tell(title, candidates, rates) {
  console.log(`\n${title}`);
  candidates.forEach(({ name, aim }, index) => {
    const line = `  ${name.padEnd(34)}${median(rates[index]).toFixed(0).padStart(9)} /s`;
    console.log(index === 0 ? line : `${line}   ${compared(rates[0], rates[index], aim)}`);
  });
}

function compared(ours, theirs, aim) {
  const ratio = median(ours) / median(theirs);
  const rounds = ours.map((rate, round) => rate / theirs[round]);
  const spread = `${quantile(rounds, 0.25).toFixed(2)} to ${quantile(rounds, 0.75).toFixed(2)}`;
  const verdict = aim === undefined ? '' : `, ${ratio >= aim ? 'meets' : 'MISSES'} ${aim}`;
  return `ratio ${ratio.toFixed(2)} (${spread}${verdict})`;
}

function quantile(values, share) {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
