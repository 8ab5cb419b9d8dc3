/** Histories that have no order, by what is wrong with them. In each the last answer is the one that cannot be explained. */
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

/** Bad at every store. */
export const BAD: Readonly<Record<string, readonly Call[]>> = {
  'two leases at once': [call(0, 5, acquire('a1'), granted(1)), call(1, 6, acquire('b1'), granted(2))],
  'a grant before the expiry': [call(0, 10, acquire('a1'), granted(1)), call(90, 99.9, acquire('b1'), granted(2))],
  'B5 a renewal after the expiry': [call(0, 10, acquire('a1'), granted(1)), call(110.1, 111, renew('a1', 1), renewed)],
  'the boundary: a renewal at the expiry itself': [
    call(0, 0, acquire('a1'), granted(1)),
    call(100, 100, renew('a1', 1), renewed),
  ],
  'the boundary: a lease that is held at its expiry': [
    call(0, 0, acquire('a1'), granted(1)),
    call(100, 100, acquire('b1'), held('a', 1, 0)),
  ],
  'the boundary: a renewal that depends on the grant having come late, and a reading that says it came early': [
    call(0, 10, acquire('a1'), granted(1)),
    call(50, 50, read, record('held', 'a', 1, 52)),
    call(105, 105, renew('a1', 1), renewed),
  ],
  'B5 an expired lease that is renewed after it was seen expired': [
    call(0, 10, acquire('a1'), granted(1)),
    call(104, 105, read, record('expired', 'a', 1)),
    call(106, 107, renew('a1', 1), renewed),
  ],
  'B5 a renewal that shortens': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, renew('a1', 1, 10), renewed),
    call(50, 51, acquire('b1'), granted(2)),
  ],
  'B5 a renewal that does not extend': [
    call(0, 1, acquire('a1'), granted(1)),
    call(60, 61, renew('a1', 1), renewed),
    call(120, 121, renew('a1', 1), lost('expired')),
  ],
  'B6 a release by the worker alone': [
    call(0, 1, acquire('a1'), granted(1)),
    call(110, 111, acquire('a2'), granted(2)),
    call(112, 113, release('a1', 1), released),
  ],
  'B6 a release that is denied to the current lease': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, release('a1', 1), kept),
  ],
  'B6 a lease that is released twice': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 6, release('a1', 1), released),
    call(3, 7, release('a1', 1), released),
  ],
  'B2 a token that is issued twice': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, release('a1', 1), released),
    call(4, 5, acquire('b1'), granted(1)),
  ],
  'B4 the older handle that still renews': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, acquire('a2', { extend: true }), extended(1)),
    call(4, 5, renew('a1', 1), renewed),
  ],
  'B4 `refuse` that extends': [call(0, 1, acquire('a1'), granted(1)), call(2, 3, acquire('a2'), extended(1))],
  'B12 a repeated acquire that is told of its own lease': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, acquire('a1'), held('a', 1, 98)),
  ],
  'B17 a write of the older worker': [
    call(0, 1, acquire('a1'), granted(1)),
    call(110, 111, acquire('b1'), granted(2)),
    call(112, 113, commit('a1', 1, 0), committed),
  ],
  'B18 a write that lands after the newer worker’s first fenced access': [
    call(0, 1, acquire('a1'), granted(1)),
    call(110, 113, acquire('b1'), granted(2)),
    call(114, 115, open('b1', 2), opened(0)),
    call(109, 140, commit('a1', 1, 0, 'x'), committed),
  ],
  'B19 a write under a released lease': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, release('a1', 1), released),
    call(4, 5, commit('a1', 1, 0), committed),
  ],
  'B24 two writes on what both have read': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 8, commit('a1', 1, 0, 'x'), committed),
    call(3, 9, commit('a1', 1, 0, 'y'), committed),
  ],
  'a conflict where nothing has changed': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, commit('a1', 1, 0), conflict),
  ],
  'a write that is not read afterwards': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, commit('a1', 1, 0, 'x'), committed),
    call(4, 5, open('a1', 1), opened(0)),
  ],
  'a reading that goes back': [
    call(0, 1, acquire('a1'), granted(1)),
    call(110, 113.5, acquire('b1'), granted(2)),
    call(111, 112, fence, highest(2)),
    call(113, 114, fence, highest(1)),
  ],
  'a reading of a lease that was released': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, release('a1', 1), released),
    call(4, 5, read, record('held', 'a', 1, 97)),
  ],
  'a wrong time left': [call(0, 1, acquire('a1'), granted(1)), call(50, 51, read, record('held', 'a', 1, 90))],
  'a loss for the wrong reason': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, revoke, revoked('a', 1)),
    call(4, 5, renew('a1', 1), lost('released')),
  ],
  'B11 an unknown acquire that would have to come before its call': [
    call(0, 1, acquire('b1'), held('a', 1, 90)),
    unknown(2, acquire('a1')),
  ],
  'B11 an unknown renewal that would have to take effect twice': [
    call(0, 1, acquire('a1'), granted(1)),
    unknown(50, renew('a1', 1)),
    call(90, 91, read, record('held', 'a', 1, 60)),
    call(150, 151, read, record('held', 'a', 1, 40)),
  ],
  'B11 an unknown release that does not explain an earlier expiry': [
    call(0, 1, acquire('a1'), granted(1)),
    call(20, 21, acquire('b1'), granted(2)),
    unknown(30, release('a1', 1)),
  ],
  'B11 an unknown write that is read, and then not': [
    call(0, 1, acquire('a1'), granted(1)),
    unknown(2, commit('a1', 1, 0, 'x')),
    call(10, 11, open('a1', 1), opened(1, 'x')),
    call(12, 13, open('a1', 1), opened(0)),
  ],
};

/** Bad where a new token is one more than the last, and good where tokens only rise. */
export const BAD_TOKENS: Readonly<Record<string, readonly Call[]>> = {
  'B2 a first token that is not 1': [call(0, 1, acquire('a1'), granted(2))],
  'B2 a token that is skipped': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, release('a1', 1), released),
    call(4, 5, acquire('b1'), granted(3)),
  ],
  'B2 a token that a refusal has used': [
    call(0, 1, acquire('a1'), granted(1)),
    call(2, 3, acquire('b1'), held('a', 1, 98)),
    call(110, 111, acquire('b1'), granted(3)),
  ],
  'B11 two tokens more for one unknown acquire': [
    call(0, 1, acquire('a1'), granted(1)),
    unknown(2, acquire('c1')),
    call(300, 301, acquire('b1'), granted(4)),
  ],
};
