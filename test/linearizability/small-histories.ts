/** Histories of a few calls in whole milliseconds: what a right store answers at some moment of each, or nearly that. */
import { randomOf } from '../support/random.ts';
import type { Answer, Ask, Call } from './history.ts';
import { EMPTY, serve } from './oracle.ts';
import { acquire, commit, fence, open, read, release, renew, revoke } from './planted.ts';

const TTL = 4;

/** Some are as they were played, the others have an answer or a time that was changed. */
export function smallHistory(seed: number): readonly Call[] {
  const random = randomOf(seed);
  const upTo = (most: number): number => Math.floor(random() * (most + 1));
  const calls: Call[] = [];
  let store = EMPTY;
  let now = 8;
  for (let length = 3 + upTo(3); length > 0; length -= 1) {
    now += upTo(3);
    const ask = someAsk(upTo, store.token, calls);
    const isPlayed = random() < 0.9;
    const [answer, after] = serve(store, ask, now);
    if (isPlayed) store = after;
    const isUnknown = !isPlayed || (random() < 0.15 && ask.kind !== 'read');
    const at = now - upTo(2);
    calls.push({ client: 0, ask, at, end: isUnknown ? Infinity : now + upTo(2), answer: isUnknown ? null : answer });
  }
  return random() < 0.25 ? calls : changed(calls, upTo);
}

function someAsk(upTo: (most: number) => number, token: number, calls: readonly Call[]): Ask {
  const acquisition = ['a1', 'a2', 'b1'][upTo(2)]!;
  const shown = Math.max(1, token - (upTo(3) === 0 ? 1 : 0));
  const version = calls.filter(({ ask }) => ask.kind === 'commit').length;
  const asks: readonly Ask[] = [
    acquire(acquisition, { ttl: TTL, extend: upTo(1) === 0 }),
    acquire(acquisition, { ttl: TTL - upTo(2) }),
    renew(acquisition, shown, TTL - upTo(1) * 2),
    renew(acquisition, shown, TTL),
    release(acquisition, upTo(2) === 0 ? undefined : shown),
    open(acquisition, shown),
    commit(acquisition, shown, upTo(version), `${calls.length}`),
    ...[read, read, fence, revoke],
  ];
  return asks[upTo(asks.length - 1)]!;
}

function changed(calls: readonly Call[], upTo: (most: number) => number): readonly Call[] {
  const place = upTo(calls.length - 1);
  const { answer, at, end } = calls[place]!;
  const shift = 1 + upTo(2);
  const how = upTo(2);
  const other: Partial<Call> =
    how === 0 ? { at: at + shift, end: end + shift } : how === 1 ? { at: at - shift, end: end - shift } : {};
  const call = { ...calls[place]!, ...other, answer: answer && how === 2 ? near(answer, upTo) : answer };
  return calls.with(place, { ...call, at: Math.min(call.at, call.end) });
}

/** Another answer of the same kind. */
function near(answer: Answer, upTo: (most: number) => number): Answer {
  const other = upTo(1) * 2 - 1;
  switch (answer.is) {
    case 'granted':
      return upTo(1) === 0 ? { ...answer, extended: !answer.extended } : { ...answer, token: answer.token + other };
    case 'held':
      return { ...answer, remaining: Math.max(1, answer.remaining + other) };
    case 'renewed':
      return { is: 'lost', reason: 'expired' };
    case 'lost':
      return answer.reason === 'expired' ? { is: 'renewed' } : { is: 'lost', reason: 'released' };
    case 'released':
      return { is: 'kept' };
    case 'kept':
      return { is: 'released' };
    case 'record':
      if (answer.state === 'held') return { ...answer, remaining: Math.max(1, answer.remaining + other) };
      return { ...answer, state: answer.state === 'free' ? 'expired' : 'free' };
    case 'fence':
      return { ...answer, token: Math.max(0, answer.token + other) };
    case 'opened':
      return { ...answer, version: answer.version + 1 };
    case 'committed':
      return { is: 'conflict' };
    default:
      return answer;
  }
}
