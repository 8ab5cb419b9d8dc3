/** The state of the protocol: one run at a store, workers who believe, and what is on its way between them. */

/** What a fence compares. Acquisitions are numbered as they were drawn; 0 is none. */
export interface Pair {
  readonly token: number;
  readonly acquisition: number;
}

/** The newest lease as the store keeps it. Times at the store are ticks of its own clock. */
export interface StoreRow extends Pair {
  readonly workerId: string;
  readonly expiresAt: number;
  readonly released: boolean;
}

export interface WorkerState {
  /** By so many ticks its clock is behind the store's. */
  readonly lag: number;
  /** Of the hold that goes on, 0 while there is none. */
  readonly acquisition: number;
  /** The request whose answer it waits for, and when that was handed over, by its own clock. */
  readonly waiting: { readonly kind: 'acquire' | 'renew'; readonly sentAt: number } | null;
  /** What it believes to have, until the deadline on its own clock. */
  readonly lease: { readonly token: number; readonly deadline: number } | null;
  /** It acquires no earlier, by its own clock. Only a design that waits has one. */
  readonly notBefore: number;
}

/** A request, or the reply to it. Token 0 is unknown. */
export interface Message extends Pair {
  readonly kind: 'acquire' | 'renew' | 'release' | 'write';
  readonly worker: number;
  readonly sentAt: number;
  /** Its sender has given up waiting. */
  readonly abandoned: boolean;
  readonly reply: Reply | null;
}

export type Reply = 'granted' | 'held' | 'renewed' | 'lost';

export interface ProtocolState {
  /** By the store's clock. */
  readonly now: number;
  readonly drawn: number;
  readonly workers: readonly WorkerState[];
  readonly row: StoreRow | null;
  /** What a fenced write has shown, and moved on by a re-acquire. */
  readonly fence: Pair;
  /** By whom the data was written last. */
  readonly written: Pair;
  readonly messages: readonly Message[];
}

const NONE: Pair = { token: 0, acquisition: 0 };

export function initialState(workers: number): ProtocolState {
  const idle: WorkerState = { lag: 0, acquisition: 0, waiting: null, lease: null, notBefore: 0 };
  return {
    now: 0,
    drawn: 0,
    workers: Array.from({ length: workers }, () => idle),
    row: null,
    fence: NONE,
    written: NONE,
    messages: [],
  };
}

export function localNow({ now, workers }: ProtocolState, worker: number): number {
  return now - workers[worker]!.lag;
}

export function withWorker(state: ProtocolState, worker: number, change: Partial<WorkerState>): ProtocolState {
  const workers = state.workers.map((one, at) => (at === worker ? { ...one, ...change } : one));
  return { ...state, workers };
}

export function withMessage(state: ProtocolState, message: Message): ProtocolState {
  return { ...state, messages: [...state.messages, message] };
}

export function withoutMessage(state: ProtocolState, message: Message): ProtocolState {
  return { ...state, messages: state.messages.filter((other) => other !== message) };
}

const KINDS = ['acquire', 'renew', 'release', 'write'] as const;
const REPLIES = ['granted', 'held', 'renewed', 'lost'] as const;

/** A digit for each field; what is null is a dash. Messages have no order, so they are written down sorted. */
export function encode({ now, drawn, workers, row, fence, written, messages }: ProtocolState): string {
  let text = `${now}${drawn}${fence.token}${fence.acquisition}${written.token}${written.acquisition}`;
  text += row ? `${row.token}${row.acquisition}${row.workerId}${row.expiresAt}${+row.released}` : '-----';
  for (const { lag, acquisition, waiting, lease, notBefore } of workers) {
    text += `${lag}${acquisition}${notBefore}`;
    text += waiting ? `${KINDS.indexOf(waiting.kind)}${waiting.sentAt}` : '--';
    text += lease ? `${lease.token}${lease.deadline}` : '--';
  }
  return messages.length === 0 ? text : text + messages.map(encodeMessage).sort().join('');
}

function encodeMessage({ kind, worker, token, acquisition, sentAt, abandoned, reply }: Message): string {
  const answer = reply === null ? '-' : REPLIES.indexOf(reply);
  return `${KINDS.indexOf(kind)}${worker}${token}${acquisition}${sentAt}${+abandoned}${answer}`;
}

/** Their lengths as text. */
const [HEAD, WORKER, MESSAGE] = [11, 7, 7];

export function decode(key: string, workers: number): ProtocolState {
  const digit = (at: number): number => key.charCodeAt(at) - 48;
  const row = key[6] === '-' ? null : readRow(key, digit);
  const messagesAt = HEAD + workers * WORKER;
  const messages: Message[] = [];
  for (let at = messagesAt; at < key.length; at += MESSAGE) messages.push(readMessage(key, at, digit));
  return {
    now: digit(0),
    drawn: digit(1),
    fence: { token: digit(2), acquisition: digit(3) },
    written: { token: digit(4), acquisition: digit(5) },
    row,
    workers: Array.from({ length: workers }, (_, worker) => readWorker(key, HEAD + worker * WORKER, digit)),
    messages,
  };
}

type Digit = (at: number) => number;

function readRow(key: string, digit: Digit): StoreRow {
  const [token, acquisition, workerId] = [digit(6), digit(7), key[8]!];
  return { token, acquisition, workerId, expiresAt: digit(9), released: digit(10) === 1 };
}

function readWorker(key: string, at: number, digit: Digit): WorkerState {
  const kind = digit(at + 3) === 0 ? 'acquire' : 'renew';
  return {
    lag: digit(at),
    acquisition: digit(at + 1),
    notBefore: digit(at + 2),
    waiting: key[at + 3] === '-' ? null : { kind, sentAt: digit(at + 4) },
    lease: key[at + 5] === '-' ? null : { token: digit(at + 5), deadline: digit(at + 6) },
  };
}

function readMessage(key: string, at: number, digit: Digit): Message {
  return {
    kind: KINDS[digit(at)]!,
    worker: digit(at + 1),
    token: digit(at + 2),
    acquisition: digit(at + 3),
    sentAt: digit(at + 4),
    abandoned: digit(at + 5) === 1,
    reply: key[at + 6] === '-' ? null : REPLIES[digit(at + 6)]!,
  };
}
