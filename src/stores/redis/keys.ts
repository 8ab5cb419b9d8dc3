/**
 * Where a run is kept. Runs are spread over a fixed number of buckets, and a bucket is one hash tag: on a cluster all keys
 * of a run lie in one slot, beside the index and the marker of the bucket, so that one script can look at all of them.
 *
 * The run's name comes last and whole. The hash tag is what stands between the first pair of braces, and those are ours.
 */

/** Fixed for ever: another number would look for runs in other places. */
export const BUCKETS = 256;

export class RedisKeys {
  readonly #prefix: string;

  /** @param prefix - holds no braces. */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** The record of the run. Its changes are published under the same name. */
  lease(runId: string): string {
    return `${this.#prefix}:${hashTag(runId)}:lease:${runId}`;
  }

  /** What sessions read and write of the run. */
  document(runId: string): string {
    return `${this.#prefix}:${hashTag(runId)}:document:${runId}`;
  }

  /** The names of the bucket's runs, sorted by their bytes. */
  runs(bucket: number): string {
    return `${this.#prefix}:{${bucket}}:runs`;
  }

  /** What is there as long as the server has forgotten nothing. */
  marker(bucket: number): string {
    return `${this.#prefix}:{${bucket}}:marker`;
  }
}

/** What stands in the names of all keys of the run's slot. */
export function hashTag(runId: string): string {
  return `{${bucketOf(runId)}}`;
}

/** FNV-1a over UTF-16 code units, folded. */
export function bucketOf(runId: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < runId.length; index += 1) {
    hash = Math.imul(hash ^ runId.charCodeAt(index), 0x01000193);
  }
  return (hash ^ (hash >>> 8) ^ (hash >>> 16) ^ (hash >>> 24)) & (BUCKETS - 1);
}
