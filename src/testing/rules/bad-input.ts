import assert from 'node:assert/strict';
import type { LeaseRef } from '../../lease.ts';
import type { AcquireRequest, LeaseStore, ListQuery, ReleaseRequest, RevokeReason } from '../../stores/store.ts';
import type { RuleContext, RuleFamily } from '../rule.ts';
import { granted, requestFor, stillLive } from '../rule.ts';

type BadValues = readonly unknown[];

const NO_NAMES: BadValues = [
  '',
  'nul \0 inside',
  '\ud800',
  'x'.repeat(1025),
  '\u00e9'.repeat(513),
  7,
  7n,
  null,
  {},
  ['a'],
];
const NO_DURATIONS: BadValues = [
  0,
  -0,
  -1,
  Number.NaN,
  Infinity,
  -Infinity,
  Number.MAX_VALUE,
  '30',
  30n,
  null,
  undefined,
  new Date(),
  {},
];
const NO_TOKENS: BadValues = [0, -0, -1, 1.5, Number.NaN, Infinity, 2 ** 53, '7', 7n, null, new Date()];
const NO_SIGNALS: BadValues = [null, 'signal', {}, new AbortController()];
const NO_OBJECTS: BadValues = [null, undefined, 'run', 7];
const NO_WORDS: BadValues = ['', 'EXTEND', 'held ', 7, null, true];

/** Makes one call with the bad value in its place. The name is what the error has to mention. */
interface BadCall {
  readonly argument: string;
  readonly values: BadValues;
  readonly call: (target: Target, value: never) => unknown;
}

interface Target {
  readonly store: LeaseStore;
  readonly request: AcquireRequest;
  readonly lease: LeaseRef;
}

const NAMES = ['runId', 'workerId', 'acquisitionId'] as const;

const CALLS: Readonly<Record<string, readonly BadCall[]>> = {
  acquire: [
    ...NAMES.map((name) => acquireWith(name, NO_NAMES)),
    acquireWith('ttlSeconds', NO_DURATIONS),
    acquireWith('reacquire', NO_WORDS),
    { argument: '', values: NO_OBJECTS, call: ({ store }, value) => store.acquire(value) },
    withSignal(({ store, request }, options) => store.acquire(request, options)),
  ],
  renew: [
    ...NAMES.map((name) => renewWith(name, NO_NAMES)),
    renewWith('fencingToken', NO_TOKENS),
    { argument: 'ttlSeconds', values: NO_DURATIONS, call: ({ store, lease }, value) => store.renew([lease], value) },
    { argument: '', values: NO_OBJECTS, call: ({ store, request }, value) => store.renew(value, request.ttlSeconds) },
    { argument: '', values: NO_OBJECTS, call: ({ store, request }, value) => store.renew([value], request.ttlSeconds) },
    withSignal(({ store, lease, request }, options) => store.renew([lease], request.ttlSeconds, options)),
  ],
  release: [
    ...NAMES.map((name) => releaseWith(name, NO_NAMES)),
    releaseWith('fencingToken', NO_TOKENS),
    { argument: '', values: NO_OBJECTS, call: ({ store }, value) => store.release(value) },
    withSignal(({ store, lease }, options) => store.release(lease, options)),
  ],
  revoke: [
    {
      argument: 'runId',
      values: NO_NAMES,
      call: ({ store }, value) => store.revoke(value, { by: 'kit', reason: 'x' }),
    },
    revokeWith('by'),
    revokeWith('reason'),
    { argument: '', values: NO_OBJECTS, call: ({ store, lease }, value) => store.revoke(lease.runId, value) },
  ],
  'read and currentFence': [
    { argument: 'runId', values: NO_NAMES, call: ({ store }, value) => store.read(value) },
    { argument: 'runId', values: NO_NAMES, call: ({ store }, value) => store.currentFence(value) },
    withSignal(({ store, lease }, options) => store.read(lease.runId, options)),
    withSignal(({ store, lease }, options) => store.currentFence(lease.runId, options)),
  ],
  list: [
    listWith('state', NO_WORDS),
    listWith('workerId', NO_NAMES),
    listWith(
      'prefix',
      NO_NAMES.filter((value) => value !== ''),
    ),
  ],
};

export const badInputRules: RuleFamily = {
  title: 'arguments that make no sense',
  rules: Object.fromEntries(
    Object.entries(CALLS).map(([name, calls]) => [
      `NM1 ${name}: what makes no sense is refused by name, and nothing changes`,
      (context: RuleContext) => refusesAll(context, calls),
    ]),
  ),
};

async function refusesAll(context: RuleContext, calls: readonly BadCall[]): Promise<void> {
  const { store } = context;
  const lease = await granted(context, { ttlSeconds: context.ttlSeconds * 100 });
  const request = requestFor({ ...context, runId: context.anotherRun() });
  const before = await store.read(lease.runId);
  for (const { argument, values, call } of calls) {
    for (const value of values) {
      const target = { store, request, lease };
      await assert.rejects(
        async () => call(target, value as never),
        (error) => isRefusal(error, argument),
        `\`${argument}\` of ${String(value)} (${typeof value}) was not refused by a TypeError or RangeError that names it`,
      );
    }
  }
  const after = await store.read(lease.runId);
  assert.deepEqual({ ...after, remainingSeconds: 0 }, { ...before, remainingSeconds: 0 });
  assert.equal(await store.currentFence(request.runId), 0);
  await stillLive(context, lease);
}

function isRefusal(error: unknown, argument: string): boolean {
  return (error instanceof TypeError || error instanceof RangeError) && error.message.includes(argument);
}

function acquireWith(argument: keyof AcquireRequest, values: BadValues): BadCall {
  return { argument, values, call: ({ store, request }, value) => store.acquire({ ...request, [argument]: value }) };
}

function renewWith(argument: keyof LeaseRef, values: BadValues): BadCall {
  return {
    argument,
    values,
    call: ({ store, lease, request }, value) =>
      store.renew([lease, { ...lease, [argument]: value }], request.ttlSeconds),
  };
}

function releaseWith(argument: keyof ReleaseRequest, values: BadValues): BadCall {
  return { argument, values, call: ({ store, lease }, value) => store.release({ ...lease, [argument]: value }) };
}

function revokeWith(argument: keyof RevokeReason): BadCall {
  const why: RevokeReason = { by: 'kit', reason: 'x' };
  const call: BadCall['call'] = ({ store, lease }, value) => store.revoke(lease.runId, { ...why, [argument]: value });
  return { argument, values: NO_NAMES, call };
}

function listWith(argument: keyof ListQuery, values: BadValues): BadCall {
  return { argument, values, call: ({ store }, value) => drain(store.list({ [argument]: value })) };
}

function withSignal(call: (target: Target, options: { readonly signal: never }) => unknown): BadCall {
  return { argument: 'signal', values: NO_SIGNALS, call: (target, signal) => call(target, { signal }) };
}

async function drain(records: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of records);
}
