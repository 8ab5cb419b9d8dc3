import { describe, expect, it } from 'vitest';
import { LeaseRegistry } from '../../src/index.ts';

const NOT_NUMBERS = ['30', 30n, null, undefined, {}, new Date(0), true, [1]];
const NOT_FINITE = [Number.NaN, Infinity, -Infinity];
const NOT_NAMES = [1, null, undefined, {}, ['run-1'], Symbol('run')];
const BAD_NAMES = ['', 'nul\0', '\ud800', 'x\udc00y', 'x'.repeat(1025), '\u00e9'.repeat(513)];
const BAD_TOKENS = [0, -0, -1, 1.5, Number.NaN, 2 ** 53, Infinity];

const registry = new LeaseRegistry({ ttlSeconds: 10 });
const lease = registry.acquire('run-1', 'worker-a', 0)!;

/** Calls with a wrong argument: refused, by the argument's name, with nothing changed. */
function expectRefusal(argument: string, value: unknown, call: (value: never) => unknown, kind = Error): void {
  const before = JSON.stringify(registry);
  let caught: unknown;
  try {
    call(value as never);
  } catch (error) {
    caught = error;
  }
  expect(caught instanceof TypeError || caught instanceof RangeError, `${argument} = ${String(value)}`).toBe(true);
  expect(caught).toBeInstanceOf(kind);
  expect((caught as Error).message).toContain(`\`${argument}\``);
  expect(JSON.stringify(registry)).toBe(before);
}

describe('I bad input to the registry is refused by name, and changes nothing', () => {
  const { leaseId, fencingToken } = lease;

  it.each([...NOT_NUMBERS, ...NOT_FINITE, 0, -0, -1])('NM1 ttlSeconds %o', (value) => {
    expectRefusal('ttlSeconds', value, (ttlSeconds) => new LeaseRegistry({ ttlSeconds }));
  });

  it('NM1 options that are none, and words that are none', () => {
    for (const value of [null, undefined, 10]) expectRefusal('options', value, (options) => new LeaseRegistry(options));
    expectRefusal('reacquire', 'maybe', (reacquire) => new LeaseRegistry({ ttlSeconds: 1, reacquire }), TypeError);
    expectRefusal('listener', 'log', (listener) => registry.on('lease.granted', listener), TypeError);
  });

  it.each([...NOT_NUMBERS, ...NOT_FINITE])('NM1 now %o', (value) => {
    expectRefusal('now', value, (now) => registry.acquire('run-2', 'worker-a', now));
    expectRefusal('now', value, (now) => registry.heartbeat(leaseId, fencingToken, now));
    expectRefusal('now', value, (now) => registry.validate('run-1', leaseId, fencingToken, now));
    expectRefusal('now', value, (now) => registry.expire(now));
  });

  it.each([...NOT_NAMES, ...BAD_NAMES])('NM3 runId and workerId %o', (value) => {
    expectRefusal('runId', value, (runId) => registry.acquire(runId, 'worker-a', 0));
    expectRefusal('workerId', value, (workerId) => registry.acquire('run-2', workerId, 0));
    expectRefusal('runId', value, (runId) => registry.validate(runId, leaseId, fencingToken, 0));
    expectRefusal('runId', value, (runId) => registry.get(runId));
    expectRefusal('runId', value, (runId) => registry.actorOf(runId));
  });

  it.each([...NOT_NUMBERS, ...BAD_TOKENS, '7', 7n])('NM4 fencingToken %o', (value) => {
    expectRefusal('fencingToken', value, (token) => registry.heartbeat(leaseId, token, 0));
    expectRefusal('fencingToken', value, (token) => registry.validate('run-1', leaseId, token, 0));
    expectRefusal('fencingToken', value, (token) => registry.release(leaseId, token));
  });

  it('I a lease id that is no string', () => {
    for (const value of NOT_NAMES) {
      expectRefusal('leaseId', value, (id) => registry.heartbeat(id, fencingToken, 0), TypeError);
      expectRefusal('leaseId', value, (id) => registry.validate('run-1', id, fencingToken, 0), TypeError);
      expectRefusal('leaseId', value, (id) => registry.release(id, fencingToken), TypeError);
    }
  });

  it('I a record that is cut short, newer, or contradicts itself', () => {
    const record = registry.toJSON();
    const entry = record.leases[0]!;
    const wrong: [string, unknown][] = [
      ['json', null],
      ['json.version', {}],
      ['json.version', { ...record, version: 2 }],
      ['json.ttlSeconds', { ...record, ttlSeconds: undefined }],
      ['json.reacquire', { ...record, reacquire: undefined }],
      ['json.nextToken', { ...record, nextToken: '2' }],
      ['json.nextToken', { ...record, nextToken: 0 }],
      ['json.latestNow', { ...record, latestNow: Number.NaN }],
      ['json.leases', { ...record, leases: undefined }],
      ['json.leases', { ...record, nextToken: 3, leases: [entry, { ...entry, fencingToken: 2 }] }],
      ['json.leases', { ...record, leases: [entry, { ...entry, runId: 'run-2' }] }],
      ['json.leases[0]', { ...record, leases: [null] }],
      ['json.leases[0].fencingToken', { ...record, leases: [{ ...entry, fencingToken: record.nextToken }] }],
      ['json.leases[0].expiresAt', { ...record, leases: [{ ...entry, expiresAt: null }] }],
      ['json.leases[0].state', { ...record, leases: [{ ...entry, state: 'free' }] }],
    ];
    for (const [argument, json] of wrong) expectRefusal(argument, json, (value) => LeaseRegistry.from(value));
  });

  it.each([
    ['state', { state: 'expired' }],
    ['leaseId', { leaseId: 'run-1:worker-b:1' }],
    ['expiresAt', { expiresAt: 100 }],
    ['reported', { reported: true }],
  ])('A2 A4 a record is refused whose lease contradicts itself in its %s', (field, wrong) => {
    const { leases, ...record } = registry.toJSON();
    const json = { ...record, leases: [{ ...leases[0], ...wrong }] };
    expectRefusal(`json.leases[0].${field}`, json, (value) => LeaseRegistry.from(value), RangeError);
  });

  it('A2 A4 a record is refused that has leases and has seen no time', () => {
    const json = { ...registry.toJSON(), latestNow: null };
    expectRefusal('json.latestNow', json, (value) => LeaseRegistry.from(value), RangeError);
  });

  it('I a record with unknown fields and a run called __proto__ is read', () => {
    const original = new LeaseRegistry({ ttlSeconds: 10 });
    original.acquire('__proto__', 'worker-a', 0);
    const json = JSON.parse(JSON.stringify(original));
    const restored = LeaseRegistry.from({ ...json, later: true, leases: [{ ...json.leases[0], later: 1 }] });
    expect(restored.get('__proto__')?.workerId).toBe('worker-a');
  });

  it('NM3 names that merely look alike or look dangerous are different runs', () => {
    const names = [
      ...['__proto__', 'constructor', '../x', '{tag}', '{}', '*', '?', '%', '_', '"', "'", ':', 'a:b', 'line\nbreak'],
      ...[' x', 'x ', 'x', 'X', 'dev', 'dev-server', 'e\u0301', '\u00e9', '\u{1f600}', '\u{1f601}', 'y'.repeat(1024)],
    ];
    const many = new LeaseRegistry({ ttlSeconds: 10 });
    names.forEach((runId, index) => expect(many.acquire(runId, runId, 0)?.fencingToken).toBe(index + 1));
    for (const runId of names) expect(many.get(runId)).toMatchObject({ runId, workerId: runId });
    expect(many.leases().length).toBe(names.length);
  });

  it('NM3 a:b + c and a + b:c are told apart although their lease ids are equal but for the token', () => {
    const two = new LeaseRegistry({ ttlSeconds: 10 });
    const one = two.acquire('a:b', 'c', 0)!;
    const other = two.acquire('a', 'b:c', 0)!;
    expect(two.validate('a', one.leaseId, one.fencingToken, 0)).toBe(false);
    expect(two.release(one.leaseId, other.fencingToken)).toBe(false);
    expect(two.release(one.leaseId, one.fencingToken)).toBe(true);
    expect(two.get('a')).toEqual(other);
  });

  it('NM2 a ttl between two units is not rounded', () => {
    for (const ttlSeconds of [1.0004, 1.4999, 2.0001, 0.1 + 0.2]) {
      expect(new LeaseRegistry({ ttlSeconds }).acquire('run-1', 'worker-a', 0)?.expiresAt).toBe(ttlSeconds);
    }
  });

  it('NM4 tokens are exact up to 2^53 - 1 and compared as numbers', () => {
    const at = (nextToken: number) =>
      LeaseRegistry.from({ ...new LeaseRegistry({ ttlSeconds: 10 }).toJSON(), nextToken });
    const nine = at(9);
    const [token9, token10] = ['run-1', 'run-2'].map((runId) => nine.acquire(runId, 'worker-a', 0)!.fencingToken);
    expect(token10! > token9!).toBe(true);
    expect([token9, token10]).toEqual([9, 10]);
    const last = at(2 ** 53 - 2);
    const tokens = ['run-1', 'run-2'].map((runId) => last.acquire(runId, 'worker-a', 0)!.fencingToken);
    expect(JSON.parse(JSON.stringify(tokens))).toEqual([9007199254740990, 9007199254740991]);
    expect(() => last.acquire('run-3', 'worker-a', 0)).toThrow(RangeError);
  });
});
