import { isExpired } from './lease.rules.ts';
import { LinkedList } from './linked-list.ts';
import type { Run } from './registry.run.ts';

/**
 * Owned runs that no `expire` has named. There is a list for each ttl: as `now` never goes back, the runs of one ttl come
 * in the order of their expiry, and what has lapsed stands at the front.
 */
export class ExpiryQueue {
  readonly #byTtl = new Map<number, LinkedList<Run>>();

  /** Puts the run, which was granted or extended just now, behind those of its ttl. */
  add(run: Run, ttlSeconds: number): void {
    let list = this.#byTtl.get(ttlSeconds);
    if (list === undefined) this.#byTtl.set(ttlSeconds, (list = new LinkedList()));
    list.append(run);
    run.ttlSeconds = ttlSeconds;
  }

  /** Takes out the runs whose lease has expired. */
  *takeExpired(now: number): IterableIterator<Run> {
    for (const [ttlSeconds, list] of this.#byTtl) {
      for (let run = list.first; run !== null && isExpired(run.lease!, now); run = list.first) {
        list.remove(run);
        yield run;
      }
      if (list.size === 0) this.#byTtl.delete(ttlSeconds);
    }
  }
}
