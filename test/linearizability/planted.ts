/** Words to write histories by hand with. Times are milliseconds, every ttl is 100 unless said. */
import type { LostReason, RunState } from '../../src/lease.ts';
import type { Answer, Ask, Call, Claim } from './history.ts';

export const TTL = 100;

/** A claim by its acquisition: `a1` is the first of worker a. */
export function claim(acquisition: string, token: number): Claim {
  return { worker: acquisition[0]!, token, acquisition };
}

/** A call from one moment to another. Its client is the worker's, so that a line can be read. */
export function call(at: number, end: number, ask: Ask, answer: Answer): Call {
  return { client: 0, ask, at, end, answer };
}

/** A call that was made and never answered. */
export function unknown(at: number, ask: Ask): Call {
  return { client: 0, ask, at, end: Infinity, answer: null };
}

export function acquire(acquisition: string, { ttl = TTL, extend = false } = {}): Ask {
  return { kind: 'acquire', worker: acquisition[0]!, acquisition, ttl, extend };
}

export function renew(acquisition: string, token: number, ttl = TTL): Ask {
  return { kind: 'renew', ttl, ...claim(acquisition, token) };
}

export function release(acquisition: string, token?: number): Ask {
  return { kind: 'release', worker: acquisition[0]!, acquisition, token };
}

export function open(acquisition: string, token: number): Ask {
  return { kind: 'open', ...claim(acquisition, token) };
}

export function commit(
  acquisition: string,
  token: number,
  version: number,
  content = `${acquisition}@${version}`,
): Ask {
  return { kind: 'commit', version, content, ...claim(acquisition, token) };
}

export const read: Ask = { kind: 'read' };
export const fence: Ask = { kind: 'fence' };
export const revoke: Ask = { kind: 'revoke' };

export const granted = (token: number): Answer => ({ is: 'granted', token, extended: false });
export const extended = (token: number): Answer => ({ is: 'granted', token, extended: true });
export const held = (worker: string, token: number, remaining: number): Answer => ({
  is: 'held',
  worker,
  token,
  remaining,
});
export const renewed: Answer = { is: 'renewed' };
export const lost = (reason: LostReason): Answer => ({ is: 'lost', reason });
export const released: Answer = { is: 'released' };
export const kept: Answer = { is: 'kept' };
export const none: Answer = { is: 'none' };
export const revoked = (worker: string, token: number): Answer => ({ is: 'revoked', worker, token });
export const record = (state: RunState, worker: string, token: number, remaining = 0): Answer => ({
  is: 'record',
  state,
  worker,
  token,
  fence: token,
  remaining,
});
export const highest = (token: number): Answer => ({ is: 'fence', token });
export const opened = (version: number, content = ''): Answer => ({ is: 'opened', version, content });
export const committed: Answer = { is: 'committed' };
export const conflict: Answer = { is: 'conflict' };
