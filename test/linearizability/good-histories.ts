/** Histories that have an order, by what makes them good. */
import type { Call } from './history.ts';
import {
  acquire,
  call,
  commit,
  committed,
  conflict,
  extended,
  fence,
  granted,
  held,
  highest,
  kept,
  lost,
  none,
  open,
  opened,
  read,
  record,
  release,
  released,
  renew,
  renewed,
  revoke,
  revoked,
  unknown,
} from './planted.ts';

export const GOOD: Readonly<Record<string, readonly Call[]>> = {
  'nothing at all': [],
  'a run that was never leased': [
    call(0, 1, read, none),
    call(2, 3, fence, highest(0)),
    call(4, 5, renew('a1', 1), lost('unknown')),
    call(6, 7, release('a1', 1), kept),
    call(8, 9, revoke, none),
  ],
  'B2 a lease after the release of another': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, release('a1', 1), released),
    call(4, 5, acquire('b1'), granted(2)),
    call(6, 7, renew('a1', 1), lost('superseded')),
    call(8, 9, read, record('held', 'b', 2, 97)),
  ],
  'B3 racing acquires of which one wins, answered in the other order': [
    call(0, 9, acquire('a1'), granted(1)),
    call(1, 3, acquire('b1'), held('a', 1, 99)),
    call(2, 8, acquire('c1'), held('a', 1, 98)),
  ],
  'the boundary: a take-over at the expiry itself': [
    call(0, 0, acquire('a1'), granted(1)),
    call(100, 100, acquire('b1'), granted(2)),
  ],
  'the boundary: a renewal in the last moment before the expiry': [
    call(0, 0, acquire('a1'), granted(1)),
    call(99.999, 99.999, renew('a1', 1), renewed),
    call(199.998, 199.998, renew('a1', 1), renewed),
  ],
  'the boundary: a grant that may have come at the end of its call lives until then and the ttl': [
    call(0, 10, acquire('a1'), granted(1)),
    call(109, 109.5, renew('a1', 1), renewed),
  ],
  'the boundary: a grant that may have come at the beginning of its call is taken over as early': [
    call(0, 10, acquire('a1'), granted(1)),
    call(90, 100, acquire('b1'), granted(2)),
  ],
  'B4 a new acquisition of a worker’s own lease, and the older handle is refused': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, acquire('a2', { extend: true }), extended(1)),
    call(4, 5, renew('a1', 1), lost('superseded')),
    call(6, 7, release('a1', 1), kept),
    call(8, 9, commit('a1', 1, 0), lost('superseded')),
    call(10, 11, commit('a2', 1, 0), committed),
  ],
  'B4 with `refuse` a worker is told of its own lease': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, acquire('a2'), held('a', 1, 98)),
    call(4, 5, renew('a1', 1), renewed),
  ],
  'B5 a shorter ttl does not shorten': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, renew('a1', 1, 10), renewed),
    call(50, 51, acquire('b1'), held('a', 1, 50)),
  ],
  'B5 a renewal that is told at once and has come later, as what is left shows': [
    call(10, 11, acquire('a1'), granted(1)),
    call(9, 11, renew('a1', 1), renewed),
    call(10, 12, read, record('held', 'a', 1, 99)),
    call(11, 11, acquire('b1'), held('a', 1, 99)),
    call(12, 12, read, record('held', 'a', 1, 99)),
  ],
  'B6 a release past expiry': [
    call(0, 1, acquire('a1'), granted(1)),
    call(150, 151, read, record('expired', 'a', 1)),
    call(152, 153, renew('a1', 1), lost('expired')),
    call(154, 155, release('a1', 1), released),
    call(156, 157, read, record('free', 'a', 1)),
    call(158, 159, renew('a1', 1), lost('released')),
  ],
  'B12 an acquire repeated with its id extends, and after the end it is an acquire like any other': [
    call(0, 1, acquire('a1'), granted(1)),
    call(60, 61, acquire('a1'), extended(1)),
    call(150, 151, acquire('b1'), held('a', 1, 10)),
    call(170, 171, acquire('a1'), granted(2)),
  ],
  'B17 B19 a write past expiry, while nobody took over': [
    call(0, 1, acquire('a1'), granted(1)),
    call(150, 151, open('a1', 1), opened(0)),
    call(152, 153, commit('a1', 1, 0, 'x'), committed),
    call(154, 155, acquire('b1'), granted(2)),
    call(156, 157, open('b1', 2), opened(1, 'x')),
    call(158, 159, commit('a1', 1, 1), lost('superseded')),
  ],
  'B18 a write that was under way at the take-over, and lands before the newer worker looks': [
    call(0, 1, acquire('a1'), granted(1)),
    call(110, 140, commit('a1', 1, 0, 'x'), committed),
    call(112, 113, acquire('b1'), granted(2)),
    call(114, 141, open('b1', 2), opened(1, 'x')),
  ],
  'two writes of one lease at once, of which one is a conflict': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 9, commit('a1', 1, 0, 'x'), committed),
    call(3, 8, commit('a1', 1, 0, 'y'), conflict),
  ],
  'B19 a revocation, with its reason': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, revoke, revoked('a', 1)),
    call(4, 5, renew('a1', 1), lost('revoked')),
    call(6, 7, commit('a1', 1, 0), lost('revoked')),
    call(8, 9, acquire('b1'), granted(2)),
  ],
  'B11 an unknown acquire explains who holds, and the token that follows': [
    unknown(0, acquire('a1')),
    call(20, 21, acquire('b1'), held('a', 1, 90)),
    call(130, 131, acquire('b2'), granted(2)),
  ],
  'B11 an unknown acquire that takes effect long after its call': [
    unknown(0, acquire('a1')),
    call(20, 21, acquire('b1'), granted(1)),
    call(22, 23, release('b1', 1), released),
    call(40, 41, acquire('b2'), held('a', 2, 95)),
  ],
  'B11 an unknown acquire that never took effect': [unknown(0, acquire('a1')), call(20, 21, acquire('b1'), granted(1))],
  'B11 an unknown release explains that the run is free': [
    call(0, 1, acquire('a1'), granted(1)),
    unknown(2, release('a1', 1)),
    call(5, 6, acquire('b1'), granted(2)),
    call(7, 8, renew('a1', 1), lost('superseded')),
  ],
  'B11 an unknown renewal explains that the lease lives on': [
    call(0, 1, acquire('a1'), granted(1)),
    unknown(60, renew('a1', 1)),
    call(130, 131, acquire('b1'), held('a', 1, 35)),
  ],
  'B11 an unknown write that is read later': [
    call(0, 1, acquire('a1'), granted(1)),
    unknown(2, commit('a1', 1, 0, 'x')),
    call(50, 51, open('a1', 1), opened(1, 'x')),
  ],
  'B11 an acquire that is given up by its id': [
    unknown(0, acquire('a1')),
    call(30, 31, release('a1'), released),
    call(32, 33, acquire('b1'), granted(2)),
  ],
};

/** Good where a call that changes nothing looks at the clock at another moment than at the run, and bad elsewhere. */
export const GOOD_WITHIN_THE_CALL: Readonly<Record<string, readonly Call[]>> = {
  'a reading that does not see a renewal which is still being written, past the old expiry': [
    call(0, 0, acquire('a1'), granted(1)),
    call(99, 110, renew('a1', 1), renewed),
    call(104, 105, read, record('expired', 'a', 1)),
  ],
};

/** Good where tokens only rise: how much is left open by what has no answer. */
export const GOOD_RISING: Readonly<Record<string, readonly Call[]>> = {
  'B2 tokens with gaps': [
    call(0, 1, acquire('a1'), granted(7)),
    call(2, 3, release('a1', 7), released),
    call(4, 5, acquire('b1'), granted(1000)),
  ],
  'B11 an unknown acquire has the token that is read of it': [
    call(0, 1, acquire('a1'), granted(7)),
    unknown(2, acquire('b1')),
    call(110, 111, read, record('held', 'b', 19, 95)),
    call(112, 113, renew('a1', 7), lost('superseded')),
    call(300, 301, acquire('c1'), granted(20)),
  ],
};
