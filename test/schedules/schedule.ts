/** What a schedule is: an order of events around one hold, and how each of its calls goes. */
import { randomOf } from '../support/random.ts';

/** How a call of the store goes. `refused`: by the store. `unknown`: applied, and answered that nobody knows. */
export type Fate = 'answered' | 'refused' | 'away' | 'unknown' | 'silent';

export type Method = 'acquire' | 'renew' | 'release';

/** The effect of a call at the store, or its answer at the worker. */
export interface CallEvent {
  readonly method: Method;
  readonly number: number;
  readonly part: 'effect' | 'answer';
}

/**
 * `deadline`: the clock comes to the deadline. `rest`: six seconds pass, more than a request may take. `rival`: another
 * worker asks for the run.
 */
export type Event = 'hold' | 'deadline' | 'rest' | 'rival' | 'abort' | 'end' | 'close' | CallEvent;

export interface Schedule {
  readonly seed: number;
  readonly events: readonly Event[];
  /** By method and number. Calls without an event go as `others` says, at once. */
  readonly fates: Readonly<Record<string, Fate>>;
  readonly others: Fate;
  /** `checks`: it ends with `assertHeld()`. */
  readonly work: 'returns' | 'throws' | 'checks';
  /** How the deadline comes: timers fire, none can fire before the next event, or the machine sleeps. */
  readonly deadline: 'timers' | 'stall' | 'sleep';
  /** So much time passes before an effect and before an answer. */
  readonly latencySeconds: number;
  readonly waitSeconds: number;
  /** Whether a call that is given up ends at the store's client, too. Otherwise its answer still comes. */
  readonly obeys: boolean;
  /** Whether the lease is asked after each event. Who asks notices what a timer should have noticed. */
  readonly asks: boolean;
}

const call = (method: Method, number = 1): CallEvent[] => [
  { method, number, part: 'effect' },
  { method, number, part: 'answer' },
];
const START: readonly Event[] = ['hold', ...call('acquire')];

/** Every order of one acquire, renewal and release, the deadline, and the end of the work; with and without abort and close. */
export function everyOrder(): Event[][] {
  const cores = merges(call('renew'), ['end', ...call('release')]).map((rest) => [...START, ...rest]);
  const due = cores.flatMap((core) => inserted(core, 'deadline', 1));
  const aborted = due.flatMap((order) => [order, ...inserted(order, 'abort', 0)]);
  return [...everyWithdrawal(), ...aborted.flatMap((order) => [order, ...inserted(order, 'close', 0)])];
}

/** What is given up is released by a request that may be faster than the ask. Few orders, so each comes with more fates. */
function everyWithdrawal(): Event[][] {
  const ends: readonly Event[] = ['abort', 'close'];
  const orders = ends.flatMap((end) => merges(call('acquire'), [end, ...call('release')]));
  return Array.from({ length: 10 }, () => orders.map((order): Event[] => ['hold', ...order])).flat();
}

/** An order with a second renewal and release, and more that may happen between. */
export function drawOrder(random: () => number): Event[] {
  let rest = merge([...call('renew'), ...call('renew', 2)], ['end', ...call('release'), ...call('release', 2)], random);
  if (random() < 0.3) rest = merge(call('acquire', 2), rest, random);
  const order = [...START, ...rest];
  const extras: [Event, number][] = [
    ['deadline', 0.6],
    ['rest', 0.4],
    ['rest', 0.2],
    ['rival', 0.4],
    ['abort', 0.3],
    ['close', 0.3],
  ];
  for (const [event, share] of extras) {
    if (random() < share) order.splice(Math.floor(random() * (order.length + 1)), 0, event);
  }
  return order;
}

/** The order with all that the seed decides. What was applied without a known answer may also be applied after it. */
export function scheduleOf(events: readonly Event[], seed: number): Schedule {
  const random = randomOf(seed);
  const pick = <Value>(...values: readonly Value[]): Value => values[Math.floor(random() * values.length)]!;
  const fate = (): Fate =>
    random() < 0.5 ? 'answered' : pick<Fate>('answered', 'refused', 'away', 'unknown', 'silent');
  const calls = ['acquire 1', 'acquire 2', 'renew 1', 'renew 2', 'release 1', 'release 2'];
  const fates = Object.fromEntries(calls.map((name) => [name, fate()]));
  // The rest of the story mostly needs a grant.
  if (random() < 0.7) fates['acquire 1'] = 'answered';
  return {
    seed,
    events: events.map((event) => (random() < 0.5 ? event : swapped(event, fates))),
    fates,
    others: pick<Fate>('answered', 'answered', 'away', 'silent'),
    work: pick('returns', 'throws', 'checks'),
    deadline: pick('timers', 'stall', 'sleep'),
    latencySeconds: pick(0, 0.7),
    waitSeconds: pick(0, 0, 8),
    obeys: random() < 0.5,
    asks: random() < 0.5,
  };
}

/** One line, to see what happened. */
export function describeSchedule({ events, ...rest }: Schedule): string {
  const names = events.map((event) =>
    typeof event === 'string' ? event : `${event.method} ${event.number} ${event.part}`,
  );
  return `${names.join(', ')}; ${JSON.stringify(rest)}`;
}

export function nameOf({ method, number }: Pick<CallEvent, 'method' | 'number'>): string {
  return `${method} ${number}`;
}

function swapped(event: Event, fates: Readonly<Record<string, Fate>>): Event {
  if (typeof event === 'string' || fates[nameOf(event)] !== 'unknown') return event;
  return { ...event, part: event.part === 'effect' ? 'answer' : 'effect' };
}

/** All orders of both that keep each one's own. */
function merges(one: readonly Event[], other: readonly Event[]): Event[][] {
  if (one.length === 0 || other.length === 0) return [[...one, ...other]];
  const [first, ...rest] = one;
  const [next, ...others] = other;
  return [
    ...merges(rest, other).map((order) => [first!, ...order]),
    ...merges(one, others).map((order) => [next!, ...order]),
  ];
}

function merge(one: readonly Event[], other: readonly Event[], random: () => number): Event[] {
  const [left, right] = [[...one], [...other]];
  const order: Event[] = [];
  while (left.length + right.length > 0) {
    const fromLeft = random() < left.length / (left.length + right.length);
    order.push((fromLeft ? left : right).shift()!);
  }
  return order;
}

function inserted(order: readonly Event[], event: Event, from: number): Event[][] {
  return Array.from({ length: order.length + 1 - from }, (_, index) => order.toSpliced(from + index, 0, event));
}
