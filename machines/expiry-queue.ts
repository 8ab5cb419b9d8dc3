import { isExpired } from './lease.rules.ts';
import { LinkedList } from './linked-list.ts';
import type { Run } from './registry.run.ts';

/** So many lists are kept, empty or not: a ttl that comes back finds its own. */
const FEW_LISTS = 64;

/**
 * Owned runs that no `expire` has named. There is a list for each ttl: as `now` never goes back, the runs of one ttl come
 * in the order of their expiry, and what has lapsed stands at the front.
 */
export class ExpiryQueue {
  readonly #byTtl = new Map<number, LinkedList<Run>>();
  /** At so many lists the empty ones are dropped, before there is one more. */
  #sweepAt = FEW_LISTS;

  /** Puts the run, which was granted or extended just now, behind those of its ttl. */
  add(run: Run, ttlSeconds: number): void {
    let list = this.#byTtl.get(ttlSeconds);
    if (list === undefined) list = this.#addList(ttlSeconds);
    list.append(run);
    run.ttlSeconds = ttlSeconds;
  }

  /** So many ttls have a list. */
  get size(): number {
    return this.#byTtl.size;
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

  #addList(ttlSeconds: number): LinkedList<Run> {
    if (this.#byTtl.size >= this.#sweepAt) this.#dropEmpty();
    const list = new LinkedList<Run>();
    this.#byTtl.set(ttlSeconds, list);
    return list;
  }

  /** Runs leave their list when they are freed, so a ttl that is used no more leaves an empty one. */
  #dropEmpty(): void {
    for (const [ttlSeconds, list] of this.#byTtl) if (list.size === 0) this.#byTtl.delete(ttlSeconds);
    // Twice what is left, so that a sweep costs each new list the same, however many there are.
    this.#sweepAt = Math.max(FEW_LISTS, 2 * this.#byTtl.size);
  }
}
