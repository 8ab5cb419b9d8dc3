/**
 * Ends a run with what each store's kit gave, and with the reason of every skipped test. A skip without one fails the run.
 *
 * The reason stands in the test's title, as `(skipped: ...)`, or is the line that its file printed about what is absent.
 */
import type { UserConsoleLog } from 'vitest';
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node';

const KIT = / keeps the contract of a lease store$/;

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
  readonly reasons: Set<string>;
}

export default class StoreReporter implements Reporter {
  #vitest: Vitest | undefined;
  /** What files have printed of what is absent, by the id of the file. */
  readonly #absent = new Map<string, Set<string>>();

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onUserConsoleLog({ content, taskId = '' }: UserConsoleLog): void {
    for (const [, reason] of content.matchAll(/^skipped: (.+)$/gm)) add(this.#absent, taskId, reason!);
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const kits = new Map<string, Counts>();
    const skips = new Map<string, number>();
    for (const test of modules.flatMap((module) => [...module.children.allTests()]).filter(this.#isAsked)) {
      const { state } = test.result();
      const reason = state === 'skipped' ? this.#reasonOf(test) : undefined;
      count(kits, test, reason);
      if (state === 'skipped') skips.set(reason ?? '', (skips.get(reason ?? '') ?? 0) + 1);
      if (state === 'skipped' && reason === undefined) this.#fail(test);
    }
    this.#print(kits, skips);
  }

  /** Tests that the command line leaves out are no skips. */
  readonly #isAsked = (test: TestCase): boolean => {
    const pattern = this.#vitest?.config.testNamePattern;
    return pattern === undefined || pattern.test(namesOf(test).join(' '));
  };

  #reasonOf(test: TestCase): string | undefined {
    const own = test.result();
    const note = own.state === 'skipped' ? own.note : undefined;
    const titled = /\(skipped: (.+)\)$/.exec(test.name)?.[1];
    const printed = [...(this.#absent.get(test.module.id) ?? [])].join('; ');
    const elsewhere = process.platform === 'linux' ? undefined : `of Linux, and this is ${process.platform}`;
    return titled ?? note ?? (printed || elsewhere);
  }

  #fail(test: TestCase): void {
    process.exitCode = 1;
    this.#vitest?.logger.error(`FAILED: skipped without a reason: ${test.fullName}`);
  }

  #print(kits: ReadonlyMap<string, Counts>, skips: ReadonlyMap<string, number>): void {
    const lines: string[] = [];
    if (kits.size > 0) lines.push('', 'The kit on each store');
    const sorted = [...kits].toSorted(([one], [other]) => one.localeCompare(other));
    for (const [store, { passed, failed, skipped, reasons }] of sorted) {
      const why = reasons.size > 0 ? ` (${[...reasons].join(', ')})` : '';
      lines.push(`  ${store}: ${passed} passed, ${failed} failed, ${skipped} skipped${why}`);
    }
    if (skips.size > 0) lines.push('', 'Skipped, and why');
    for (const [reason, times] of skips) lines.push(`${String(times).padStart(6)}  ${reason || 'without a reason'}`);
    if (lines.length > 0) this.#vitest?.logger.log(`${lines.join('\n')}\n`);
  }
}

/** The kit's own tests, under the name of the store. */
function count(kits: Map<string, Counts>, test: TestCase, reason: string | undefined): void {
  const store = namesOf(test)
    .find((name) => KIT.test(name))
    ?.replace(KIT, '');
  if (store === undefined) return;
  const counts = kits.get(store) ?? { passed: 0, failed: 0, skipped: 0, reasons: new Set() };
  kits.set(store, counts);
  const { state } = test.result();
  if (state !== 'pending') counts[state] += 1;
  if (reason !== undefined) counts.reasons.add(reason);
}

/** From the outermost suite to the test. */
function namesOf(test: TestCase): string[] {
  const names = [test.name];
  for (let parent = test.parent; parent.type === 'suite'; parent = parent.parent) names.unshift(parent.name);
  return names;
}

function add(map: Map<string, Set<string>>, key: string, value: string): void {
  map.set(key, (map.get(key) ?? new Set()).add(value));
}
