/** With an inspector xstate itself runs the keeper chart. Everything must go as without one. */
import assert from 'node:assert/strict';
import type { InspectionEvent } from 'xstate';
import { describe, it } from 'vitest';
import { keeperMachine } from '../../machines/keeper.machine.ts';
import { BELIEVED, bench, TTL, watched } from './bench.ts';
import { loseReply, unavailable } from './scripted-store.ts';
import { settle } from './virtual-clock.ts';

describe('a manager with an inspector', () => {
  it('shows each keeper with its chart, its states and its actors, and holds as it does without', async () => {
    const records: InspectionEvent[] = [];
    const { clock, leases, news } = bench({ inspect: (record) => records.push(record) });
    const lease = await leases.acquire('run-1');
    await clock.advance(2 * TTL);
    assert.ok(lease.remainingSeconds() > 19);
    assert.equal(await lease.release(), true);
    assert.deepEqual(news, ['granted', ...Array.from({ length: 6 }, () => 'renewed'), 'released']);
    assert.equal(clock.armed, 0);
    const { actorRef } = records.find(({ type }) => type === '@xstate.actor')!;
    assert.equal((actorRef as { logic?: { id?: string } }).logic?.id, keeperMachine.id);
    const values = new Set(
      records.flatMap((record) =>
        record.type === '@xstate.snapshot' && 'value' in record.snapshot ? [JSON.stringify(record.snapshot.value)] : [],
      ),
    );
    for (const value of [{ acquiring: 'trying' }, { holding: 'resting' }, { holding: 'renewing' }, 'released']) {
      assert.ok(values.has(JSON.stringify(value)), JSON.stringify(value));
    }
  });

  it('loses, waits, withdraws and refuses alike', async () => {
    const { clock, store, leases, news, rival } = bench({ inspect: () => undefined });
    const lease = await leases.acquire('run-1');
    store.always('renew', unavailable);
    await clock.advance(BELIEVED + 0.01);
    assert.equal(lease.signal.aborted, true);
    assert.equal(news.at(-1), 'lost');
    assert.equal(news.filter((one) => one === 'lost').length, 1);
    store.next('acquire', loseReply);
    const unanswered = watched(leases.acquire('run-2'));
    await clock.advance(5.1);
    assert.equal((unanswered.error as { code: string }).code, 'OUTCOME_UNKNOWN');
    assert.ok(await rival('run-2'), 'withdrawn');
    const abort = new AbortController();
    const waiting = watched(leases.acquire('run-2', { waitSeconds: 60, signal: abort.signal }));
    await clock.advance(2);
    abort.abort(new Error('enough'));
    await settle();
    assert.equal(waiting.error, abort.signal.reason);
    assert.equal(await leases.tryAcquire('run-2'), null);
    await leases.close();
    assert.equal(clock.armed, 0);
  });

  it('OB2. Is not disturbed by an inspector that throws', async () => {
    const { clock, leases } = bench({
      inspect: () => {
        throw new Error('of the inspector');
      },
    });
    assert.equal(await leases.hold('run-1', {}, () => 42), 42);
    assert.equal(clock.armed, 0);
  });
});
