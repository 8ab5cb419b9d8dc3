/**
 * What tells that a server has forgotten: a key in every bucket, put there by whoever opens the store first. Every script
 * looks at the one of its bucket, in the same step. One that is gone, or is another, was lost with the leases beside it.
 */
import { randomBytes } from 'node:crypto';
import { answerOf } from './answers.ts';
import { operandsOf, type RedisCalls } from './calls.ts';
import { BUCKETS, type RedisKeys } from './keys.ts';
import { OPEN } from './scripts.ts';

/** The values of the markers, by bucket. Those that are absent are set. In one call where they may lie in several slots. */
export async function openMarkers(calls: RedisCalls, keys: RedisKeys, isCluster: boolean): Promise<readonly string[]> {
  const value = randomBytes(9).toString('base64url');
  const markers = Array.from({ length: BUCKETS }, (_, bucket) => keys.marker(bucket));
  const open = async (some: readonly string[]): Promise<readonly string[]> =>
    answerOf(await calls.run({ script: OPEN, operands: operandsOf(some, [value]), writes: false }));
  if (!isCluster) return open(markers);
  return (await Promise.all(markers.map((marker) => open([marker])))).flat();
}
