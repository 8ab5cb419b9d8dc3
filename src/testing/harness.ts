/** What the kit is given: a store, its clock, and what else it may try. */
import type { LeaseStore } from '../stores/store.ts';

/** A store to test, its clock, and what else may be tried on it. */
export interface StoreHarness {
  /** For the reports. */
  readonly name: string;
  /** Opens the store anew. Each rule opens its own and closes it; runs have names that were never used before. */
  create(): Promise<LeaseStore>;
  /**
   * The ttl to test with, in seconds. Where time is waited for, a short one keeps the tests quick; a rule that the machine
   * was too slow for is measured again with a longer one.
   */
  readonly ttlSeconds: number;
  /** Jumps the store's fake clock by exactly so many seconds, or waits until the server's own clock has moved by them. */
  advance(seconds: number): Promise<void>;
  /** `advance` waits, since the store's clock runs by itself. Then rules run side by side. @default false */
  readonly timePasses?: boolean | undefined;
  /** Rules that this store cannot keep, by their whole sentence. One that names no rule fails. */
  readonly skip?: readonly SkippedRule[] | undefined;
  /** Opens another store over the data of the first, as another process would. Left out: data ends with the store. */
  reopen?(store: LeaseStore): Promise<LeaseStore>;
  /** Opens a store whose server cannot be reached. */
  unreachable?(): Promise<LeaseStore>;
  /** Makes `fencingToken` the highest one ever issued for a free run, behind the store's back. */
  plantToken?(store: LeaseStore, runId: string, fencingToken: number): Promise<void>;
  /** So many take-overs are raced for. @default 1000 */
  readonly takeOverRounds?: number | undefined;
}

/** A rule that a store does not keep, and why. */
export interface SkippedRule {
  readonly rule: string;
  /** Why this store cannot keep it, for whoever reads the report. */
  readonly reason: string;
}

/** What a test runner offers. Vitest, Jest, Mocha and `node:test` all do. */
export interface TestRunner {
  describe(name: string, define: () => void): unknown;
  it: TestFunction;
}

/** Defines one test. */
export interface TestFunction {
  (name: string, run: () => Promise<void>): unknown;
  skip?(name: string, run: () => Promise<void>): unknown;
}
