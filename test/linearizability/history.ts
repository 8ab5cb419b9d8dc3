/** What the clients of one run asked, what they were answered, and when: the clock is that of the process that asked. */
import type { LostReason, RunState } from '../../src/lease.ts';

/** What a caller shows of its lease. */
export interface Claim {
  readonly worker: string;
  readonly token: number;
  readonly acquisition: string;
}

/** What is asked for. Durations are milliseconds. `open` and `commit` are the two halves of a fenced write. */
export type Ask =
  | {
      readonly kind: 'acquire';
      readonly worker: string;
      readonly acquisition: string;
      readonly ttl: number;
      readonly extend: boolean;
    }
  | ({ readonly kind: 'renew'; readonly ttl: number } & Claim)
  | ({ readonly kind: 'release' } & Omit<Claim, 'token'> & { readonly token: number | undefined })
  | { readonly kind: 'revoke' }
  | { readonly kind: 'read' }
  | { readonly kind: 'fence' }
  | ({ readonly kind: 'open' } & Claim)
  | ({ readonly kind: 'commit'; readonly version: number; readonly content: string } & Claim);

/** `until` is an expiry by the server's clock. The search does not look at it. */
export type Answer =
  | { readonly is: 'granted'; readonly token: number; readonly extended: boolean; readonly until?: number }
  | { readonly is: 'held'; readonly worker: string; readonly token: number; readonly remaining: number }
  | { readonly is: 'renewed'; readonly until?: number }
  | { readonly is: 'lost'; readonly reason: LostReason }
  | { readonly is: 'released' }
  | { readonly is: 'kept' }
  | { readonly is: 'revoked'; readonly worker: string; readonly token: number }
  | { readonly is: 'none' }
  | {
      readonly is: 'record';
      readonly state: RunState;
      readonly worker: string;
      readonly token: number;
      readonly fence: number;
      readonly remaining: number;
    }
  | { readonly is: 'fence'; readonly token: number }
  | { readonly is: 'opened'; readonly version: number; readonly content: string }
  | { readonly is: 'committed' }
  | { readonly is: 'conflict' };

/** One call. Without an answer its outcome is unknown: it took effect once, at any time after it was made, or never. */
export interface Call {
  readonly client: number;
  readonly ask: Ask;
  /** When it was made, in milliseconds. */
  readonly at: number;
  /** When its answer was there. `Infinity` where there was none. */
  readonly end: number;
  readonly answer: Answer | null;
}

/** The calls on one run, in the order in which they were made. */
export function inOrder(calls: readonly Call[]): readonly Call[] {
  return calls.toSorted((one, other) => one.at - other.at || one.end - other.end);
}

/** Whether the call changed nothing, by its answer. A renewal may change nothing here, but would have at another moment. */
export function onlyLooks({ answer }: Call): boolean {
  return answer !== null && !CHANGES.has(answer.is);
}

const CHANGES: ReadonlySet<Answer['is']> = new Set(['granted', 'renewed', 'released', 'revoked', 'committed']);

/** A line per call, for a person to check: when, which client, what it asked, and what it was told. */
export function print(calls: readonly Call[]): string {
  const start = calls[0]?.at ?? 0;
  return inOrder(calls)
    .map((call) => printCall(call, start))
    .join('\n');
}

export function printCall({ client, ask, at, end, answer }: Call, start = 0): string {
  const time = (moment: number): string => (moment - start).toFixed(3);
  const { kind, ...asked } = ask;
  const told = answer === null ? 'unknown' : words(answer);
  return `${time(at)}..${answer === null ? '' : time(end)} client ${client}: ${[kind, words(asked)].filter(Boolean).join(' ')} -> ${told}`;
}

function words(fields: object): string {
  return Object.entries(fields)
    .filter(([name, value]) => value !== undefined && name !== 'until')
    .map(([name, value]) => (name === 'is' ? String(value) : `${name}=${brief(value)}`))
    .join(' ');
}

function brief(value: unknown): string {
  return typeof value === 'number' ? String(Math.round(value * 1000) / 1000) : String(value);
}
