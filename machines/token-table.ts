/**
 * Values by token, for tokens that come in rising order and leave in any. A page of neighbours shares one entry of the
 * map: a `Map` whose keys come and go as fast as leases do spends its time on clearing up after them.
 */
const PAGE_SIZE = 64;

/** The tokens from `number * PAGE_SIZE` on. */
interface Page<Value> {
  readonly number: number;
  readonly values: (Value | undefined)[];
  size: number;
}

export class TokenTable<Value> {
  size = 0;
  readonly #pages = new Map<number, Page<Value>>();
  /** The page of the latest token stays while tokens are added to it, also when it is empty. */
  #latest: Page<Value> | undefined;

  get(token: number): Value | undefined {
    return this.#pageOf(token)?.values[token % PAGE_SIZE];
  }

  /** @param token - larger than every token that was added before. */
  add(token: number, value: Value): void {
    const page = this.#pageOf(token) ?? this.#turnPage(token);
    page.values[token % PAGE_SIZE] = value;
    page.size++;
    this.size++;
  }

  delete(token: number): void {
    const page = this.#pageOf(token);
    if (page?.values[token % PAGE_SIZE] === undefined) return;
    page.values[token % PAGE_SIZE] = undefined;
    page.size--;
    this.size--;
    if (page !== this.#latest) this.#dropEmpty(page);
  }

  /** In the order of their tokens. */
  *values(): IterableIterator<Value> {
    for (const { values } of this.#pages.values()) {
      for (const value of values) if (value !== undefined) yield value;
    }
  }

  #pageOf(token: number): Page<Value> | undefined {
    const number = Math.floor(token / PAGE_SIZE);
    return number === this.#latest?.number ? this.#latest : this.#pages.get(number);
  }

  #turnPage(token: number): Page<Value> {
    if (this.#latest) this.#dropEmpty(this.#latest);
    const page: Page<Value> = { number: Math.floor(token / PAGE_SIZE), values: [], size: 0 };
    this.#pages.set(page.number, page);
    return (this.#latest = page);
  }

  #dropEmpty(page: Page<Value>): void {
    if (page.size === 0) this.#pages.delete(page.number);
  }
}
