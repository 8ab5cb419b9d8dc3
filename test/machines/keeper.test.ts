/** The keeper's chart: whole, reachable everywhere, and run alike by xstate and by its table. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createActor } from 'xstate';
import { describe, it } from 'vitest';
import { keeperMachine } from '../../machines/keeper.machine.ts';
import { keeperGuards, keeperNews, keeperUpdates } from '../../machines/keeper.rules.ts';
import type { AskAnswer, KeeperContext, KeeperEvent, RenewAnswer } from '../../machines/keeper.types.ts';
import type { LongTimer } from '../../src/manager/actor-clock.ts';
import { provideKeeper } from '../../src/manager/keeper-actor.ts';
import type { KeeperActors } from '../../src/manager/keeper-actors.ts';
import { KeeperRun } from '../../src/manager/keeper-run.ts';

/** So long is each delay of the chart here: by that the two runs' timers are told apart. */
const MILLISECONDS = { poll: 1, deadline: 2, renewal: 3, retry: 4 };
const STATES = [
  'acquiring.trying',
  'acquiring.waiting',
  'holding.resting',
  'holding.renewing',
  'holding.uncertain',
  'releasing',
  'withdrawing',
  'released',
  'lost',
  'refused',
  'failed',
];

const lease = {
  runId: 'run-1',
  workerId: 'a',
  leaseId: 'run-1:a:1',
  fencingToken: 1,
  expiresAt: 30,
  acquisitionId: 'x',
  ttlSeconds: 30,
};
const deadline = { monotonicSeconds: 29, bootSeconds: 29 };
const holder = { workerId: 'b', fencingToken: 7, retryAfterSeconds: 3 };
const error = new Error('of the store');

const asks: AskAnswer[] = [
  { status: 'granted', lease, deadline },
  { status: 'held', holder, waitOver: false },
  { status: 'held', holder, waitOver: true },
  ...[true, false].flatMap((unknown) =>
    [true, false].map((waitOver) => ({ status: 'failed', error, unknown, waitOver }) as const),
  ),
];
const renewals: RenewAnswer[] = [
  { status: 'renewed', deadline: { monotonicSeconds: 39, bootSeconds: 39 } },
  { status: 'lost', reason: 'superseded' },
  { status: 'lost', reason: 'revoked' },
  { status: 'late' },
  { status: 'failed', error, unknown: true, shared: 100 },
  { status: 'failed', error, unknown: false, shared: 1 },
];
const answers: Record<string, readonly unknown[]> = {
  ask: asks,
  wakeUp: [undefined],
  renew: renewals,
  release: [{ freed: true }, { freed: false }, { freed: false, error }],
  withdraw: [undefined],
};
/** A way to each state, so that every one is seen whatever the random ones do. */
const ways: [string, number][][] = [
  [['answer', 1]],
  [['answer', 2]],
  [['answer', 3]],
  [['answer', 5]],
  [
    ['answer', 7],
    ['event', 1],
    ['answer', 4],
  ],
  [
    ['answer', 7],
    ['event', 2],
  ],
  [
    ['answer', 7],
    ['event', 3],
    ['answer', 0],
  ],
];
const events: KeeperEvent['type'][] = ['cancel', 'renew', 'expire', 'release'];

/** One step: an event, a timer, or an answer to what is on its way; the number chooses. */
const step = fc.tuple(fc.constantFrom('event', 'timer', 'answer', 'answer', 'answer'), fc.nat(100));

describe('the keeper', () => {
  it('names guards, actions, actors and delays that exist, and uses each', () => {
    const { guards, actions, actors, delays } = keeperMachine.implementations;
    const text = JSON.stringify(keeperMachine.config);
    for (const name of Object.keys({ ...guards, ...actions, ...actors, ...delays })) {
      assert.ok(text.includes(`"${name}"`), `${name} is used`);
    }
    assert.deepEqual(Object.keys(guards).toSorted(), Object.keys(keeperGuards).toSorted());
    assert.deepEqual(Object.keys(actions).toSorted(), Object.keys({ ...keeperUpdates, ...keeperNews }).toSorted());
  });

  it('has plain data as its context, and starts without an input', () => {
    const { context } = createActor(keeperMachine).getSnapshot();
    const { reacquire: _, ...kept } = context;
    assert.deepEqual(JSON.parse(JSON.stringify(context)), kept);
    assert.equal(context.times.ttlSeconds, 30);
  });

  it('is run alike by xstate and by its table, in every state', async () => {
    const seen = new Set<string>();
    const check = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 14 }), async (steps) => {
      const one = new XstateSubject();
      const other = new TableSubject();
      await compare(one, other, seen);
      for (const [kind, choice] of steps) {
        for (const subject of [one, other]) subject.play(kind, choice);
        await compare(one, other, seen);
      }
      one.stop();
    });
    await fc.assert(check, { numRuns: 250, examples: ways.map((way): [[string, number][]] => [way]) });
    assert.deepEqual([...seen].toSorted(), STATES.toSorted());
  });

  it('RN6. Tells each granted lease one end, and none without a grant', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const subject = new TableSubject();
        for (const [kind, choice] of steps) {
          subject.play(kind, choice);
          await microtasks();
        }
        const count = (...names: string[]): number => subject.news.filter((name) => names.includes(name)).length;
        assert.ok(count('granted', 'refused', 'failed') <= 1);
        assert.ok(count('lost', 'released') <= count('granted'));
        const isOver = ['lost', 'released', 'refused', 'failed'].includes(subject.path);
        assert.equal(count('lost', 'released', 'refused', 'failed'), isOver ? 1 : 0);
        if (isOver) assert.deepEqual(subject.timers(), [], 'C10 nothing is armed afterwards');
      }),
      { numRuns: 500 },
    );
  });
});

/** A keeper whose actors answer and whose timers fire when they are told to. */
abstract class Subject {
  readonly news: string[] = [];
  readonly #armed = new Map<object, { readonly milliseconds: number; readonly callback: () => void }>();
  readonly #asked: { readonly src: string; readonly answer: (value: unknown) => void; isOver: boolean }[] = [];
  abstract readonly path: string;
  abstract readonly context: KeeperContext;
  abstract send(event: KeeperEvent): void;

  readonly clock = {
    setTimeout: (callback: () => void, milliseconds: number): LongTimer => {
      const timer = {} as LongTimer;
      this.#armed.set(timer, { milliseconds, callback });
      return timer;
    },
    clearTimeout: (timer: LongTimer | undefined): void => {
      if (timer !== undefined) this.#armed.delete(timer);
    },
  };

  readonly delays = {
    poll: () => MILLISECONDS.poll,
    deadline: () => MILLISECONDS.deadline,
    renewal: () => MILLISECONDS.renewal,
    retry: () => MILLISECONDS.retry,
  };

  readonly actors = Object.fromEntries(
    Object.keys(answers).map((src) => [
      src,
      () => new Promise((answer) => this.#asked.push({ src, answer, isOver: false })),
    ]),
  ) as unknown as KeeperActors;

  timers(): number[] {
    return [...this.#armed.values()].map(({ milliseconds }) => milliseconds).toSorted((a, b) => a - b);
  }

  play(kind: string, choice: number): void {
    if (kind === 'event') return this.send({ type: events[choice % events.length]! });
    if (kind === 'timer') return this.#fire(choice);
    const open = this.#asked.filter(({ isOver }) => !isOver);
    // Mostly the newest: the older ones belong to states that were left.
    const asked = open.at(choice % 5 === 0 ? 0 : -1);
    if (asked === undefined) return;
    asked.isOver = true;
    const possible = answers[asked.src]!;
    asked.answer(possible[choice % possible.length]);
  }

  #fire(choice: number): void {
    const sorted = [...this.#armed].toSorted(([, a], [, b]) => a.milliseconds - b.milliseconds);
    const [timer, armed] = sorted[choice % Math.max(1, sorted.length)] ?? [];
    if (timer === undefined) return;
    this.#armed.delete(timer);
    armed!.callback();
  }
}

const input = {
  runId: 'run-1',
  workerId: 'a',
  acquisitionId: 'x',
  reacquire: undefined,
  times: createActor(keeperMachine).getSnapshot().context.times,
  autoRenew: true,
  waitUntilSeconds: null,
};

class TableSubject extends Subject {
  readonly #run = new KeeperRun(input, {
    actors: this.actors,
    delays: this.delays,
    clock: this.clock,
    tell: (news) => this.news.push(news),
    onBroken: (broken) => {
      throw broken as Error;
    },
  });

  constructor() {
    super();
    this.#run.start();
  }

  get path(): string {
    return this.#run.path;
  }

  get context(): KeeperContext {
    return this.#run.context;
  }

  send(event: KeeperEvent): void {
    this.#run.send(event);
  }
}

class XstateSubject extends Subject {
  readonly #actor = createActor(provideKeeper(this.actors, this.delays), { input, clock: this.clock });

  constructor() {
    super();
    this.#actor.on('*', ({ type }) => this.news.push(type));
    this.#actor.start();
  }

  get path(): string {
    const { value } = this.#actor.getSnapshot();
    return typeof value === 'string' ? value : Object.entries(value)[0]!.join('.');
  }

  get context(): KeeperContext {
    return this.#actor.getSnapshot().context;
  }

  send(event: KeeperEvent): void {
    if (this.#actor.getSnapshot().status === 'active') this.#actor.send(event);
  }

  stop(): void {
    this.#actor.stop();
  }
}

async function compare(one: Subject, other: Subject, seen: Set<string>): Promise<void> {
  await microtasks();
  assert.equal(other.path, one.path);
  assert.deepEqual(other.context, one.context);
  assert.deepEqual(other.news, one.news);
  assert.deepEqual(other.timers(), one.timers());
  seen.add(one.path);
}

async function microtasks(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}
