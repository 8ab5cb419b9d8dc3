import type { StoreHarness } from '../../src/testing/harness.ts';
import { testLeaseStore } from '../../src/testing/store-suite.ts';

export interface Report {
  readonly passed: readonly string[];
  readonly failed: ReadonlyMap<string, unknown>;
  readonly skipped: readonly string[];
}

/** Runs the kit without a test runner, one test after another. */
export async function runKit(harness: StoreHarness, only: (title: string) => boolean = () => true): Promise<Report> {
  const tests: { readonly title: string; readonly run: () => Promise<void> }[] = [];
  const skipped: string[] = [];
  const it = Object.assign((title: string, run: () => Promise<void>) => void tests.push({ title, run }), {
    skip: (title: string) => void skipped.push(title),
  });
  testLeaseStore({ describe: (_title, define) => define(), it }, harness);
  const passed: string[] = [];
  const failed = new Map<string, unknown>();
  for (const { title, run } of tests.filter((test) => only(test.title))) {
    await run().then(
      () => passed.push(title),
      (error: unknown) => failed.set(title, error),
    );
  }
  return { passed, failed, skipped };
}
