/**
 * Whether the calls on one run can be put into an order that respects real time and the rules of `model.ts`: B1. The search
 * is that of Wing and Gong, with a memory of what it has tried. It trusts no clock but that of the process that asked.
 */
import { inOrder, onlyLooks, printCall, type Call } from './history.ts';
import { isSpent, step } from './model.ts';
import { neverLeased, type RunModel, type StoreRules } from './run.ts';
import { covers, within, type Zone } from './zone.ts';

export type Verdict =
  | { readonly is: 'ok'; readonly steps: number }
  /** `prefix`: the shortest beginning of the history that has no order. Its last answer is the one that cannot be explained. */
  | { readonly is: 'bad'; readonly why: string; readonly prefix: readonly Call[] }
  /** The search was given up after so many steps. */
  | { readonly is: 'undecided'; readonly steps: number };

const MOST_STEPS = 300_000;

/** Decides, or gives up after `mostSteps`. */
export function check(calls: readonly Call[], rules: StoreRules, mostSteps = MOST_STEPS): Verdict {
  const whole = new Search(calls, rules, mostSteps);
  const found = whole.run();
  if (found === null) return { is: 'undecided', steps: whole.steps };
  return found ? { is: 'ok', steps: whole.steps } : shortest(calls, rules, mostSteps);
}

/** Halves until the first answer is found with which no order is left. A beginning of a good history is good. */
function shortest(calls: readonly Call[], rules: StoreRules, mostSteps: number): Verdict {
  const ends = calls.flatMap(({ answer, end }) => (answer === null ? [] : [end])).toSorted((one, other) => one - other);
  let good = -1;
  let bad = ends.length - 1;
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2);
    if (new Search(beginning(calls, ends[middle]!), rules, mostSteps).run() === false) bad = middle;
    else good = middle;
  }
  const prefix = beginning(calls, ends[bad]!);
  const culprit = prefix.find(({ end }) => end === ends[bad])!;
  const search = new Search(prefix, rules, mostSteps, culprit);
  search.run();
  const why = [...search.refusals].slice(0, MOST_REASONS).map((reason) => `\n  ${reason}`);
  return { is: 'bad', prefix, why: `No order explains: ${printCall(culprit, prefix[0]!.at)}${why.join('')}` };
}

const MOST_REASONS = 4;

/** What had happened by then: a call that was not answered yet may have taken effect or not. */
function beginning(calls: readonly Call[], until: number): readonly Call[] {
  return inOrder(calls)
    .filter(({ at }) => at <= until)
    .map((call) => (call.end <= until ? call : { ...call, end: Infinity, answer: null }));
}

class Search {
  steps = 0;
  /** Why the culprit could not come next, wherever that was tried. */
  readonly refusals = new Set<string>();
  readonly #answered: readonly Call[];
  readonly #unknown: readonly Call[];
  readonly #rules: StoreRules;
  readonly #mostSteps: number;
  readonly #culprit: Call | undefined;
  readonly #isPlaced: boolean[];
  readonly #hasActed: boolean[];
  /** The zones that were tried in vain, by what was placed and what stood then. */
  readonly #tried = new Map<string, Zone[]>();

  constructor(calls: readonly Call[], rules: StoreRules, mostSteps: number, culprit?: Call) {
    const ordered = inOrder(calls);
    this.#answered = ordered.filter(({ answer }) => answer !== null);
    this.#unknown = ordered.filter(({ answer }) => answer === null);
    this.#rules = rules;
    this.#mostSteps = mostSteps;
    this.#culprit = culprit;
    this.#isPlaced = this.#answered.map(() => false);
    this.#hasActed = this.#unknown.map(() => false);
  }

  /** Null when it was given up. */
  run(): boolean | null {
    const start = Math.min(0, this.#answered[0]?.at ?? 0, this.#unknown[0]?.at ?? 0);
    const found = this.#explore(neverLeased(start), 0);
    return this.steps > this.#mostSteps ? null : found;
  }

  /** Whether what is not placed yet can follow on this. Everything before `first` is placed. */
  #explore(reached: RunModel, first: number): boolean {
    while (this.#isPlaced[first]) first += 1;
    if (first === this.#answered.length) return true;
    const { candidates, before } = this.#next(first);
    // All that is left comes after this, one of it no later than then.
    const zone = within(reached.zone, { nowMost: before });
    if (zone === null) return false;
    const run = { ...reached, zone };
    if ((this.steps += 1) > this.#mostSteps || this.#wasTried(run, first)) return false;
    const choices: (readonly [index: number, next: RunModel])[] = [];
    for (const index of candidates) {
      const next = this.#stepOf(run, this.#answered[index]!);
      // What only looks, and narrows nothing, can as well come now: whatever order there is, there is one with it first.
      if (next.length === 1 && next[0] === run && onlyLooks(this.#answered[index]!))
        return this.#place(index, run, first);
      for (const each of next) choices.push([index, each]);
    }
    if (choices.some(([index, next]) => this.#place(index, next, first))) return true;
    return this.#unknown.some((call, index) => this.#mayAct(call, index, before) && this.#act(run, call, index, first));
  }

  /** The calls that may come next: those made before any other that is left was answered. The first to be answered first. */
  #next(first: number): { readonly candidates: readonly number[]; readonly before: number } {
    const candidates: number[] = [];
    let before = Infinity;
    for (let index = first; index < this.#answered.length; index += 1) {
      const call = this.#answered[index]!;
      if (call.at > before) break;
      if (this.#isPlaced[index]) continue;
      candidates.push(index);
      before = Math.min(before, call.end);
    }
    candidates.sort((one, other) => this.#answered[one]!.end - this.#answered[other]!.end);
    return { candidates, before };
  }

  #stepOf(run: RunModel, call: Call): readonly RunModel[] {
    const next = step(run, call, this.#rules);
    if (typeof next !== 'string') return next;
    if (call === this.#culprit) this.refusals.add(next);
    return [];
  }

  #place(index: number, next: RunModel, first: number): boolean {
    this.#isPlaced[index] = true;
    if (this.#explore(next, first)) return true;
    this.#isPlaced[index] = false;
    return false;
  }

  #mayAct(call: Call, index: number, before: number): boolean {
    return !this.#hasActed[index] && call.at <= before;
  }

  #act(run: RunModel, call: Call, index: number, first: number): boolean {
    this.#hasActed[index] = true;
    if (this.#stepOf(run, call).some((next) => this.#explore(next, first))) return true;
    this.#hasActed[index] = false;
    return false;
  }

  #wasTried(run: RunModel, first: number): boolean {
    const { zone, token, isTokenKnown, worker, acquisition, state, version, content } = run;
    const placed = this.#isPlaced.flatMap((isPlaced, index) => (isPlaced && index > first ? [index] : []));
    // What can change nothing any more need not be told from what has acted.
    const left = this.#unknown.flatMap((call, index) => (this.#hasActed[index] || isSpent(run, call) ? [] : [index]));
    const key = [first, placed, left, token, isTokenKnown, worker, acquisition, state, version, content].join('|');
    const zones = this.#tried.get(key);
    if (zones?.some((tried) => covers(tried, zone))) return true;
    if (zones) zones.push(zone);
    else this.#tried.set(key, [zone]);
    return false;
  }
}
