import { describe, expect, it } from 'vitest';
import { ExpiryQueue } from '../../machines/expiry-queue.ts';
import { LinkedList } from '../../machines/linked-list.ts';
import { Run } from '../../machines/registry.run.ts';

function newRun(runId: string, expiresAt: number): Run {
  const lease = { workerId: 'worker-a', leaseId: runId, fencingToken: 1, expiresAt, acquisitionId: undefined };
  return new Run(runId, 'held', lease);
}

describe('expiry queue', () => {
  it('keeps nothing for a ttl that no run has any more, however many there have been', () => {
    const queue = new ExpiryQueue();
    const idle = new LinkedList<Run>();
    let most = 0;
    for (let ttlSeconds = 1; ttlSeconds <= 10_000; ttlSeconds += 1) {
      const run = newRun('run-1', ttlSeconds);
      queue.add(run, ttlSeconds);
      idle.append(run);
      most = Math.max(most, queue.size);
    }
    expect(most).toBeLessThanOrEqual(64);
  });

  it('loses no run of a ttl that others have left', () => {
    const queue = new ExpiryQueue();
    const idle = new LinkedList<Run>();
    const staying: string[] = [];
    for (let ttlSeconds = 1; ttlSeconds <= 1_000; ttlSeconds += 1) {
      const run = newRun(`run-${ttlSeconds}`, ttlSeconds);
      queue.add(run, ttlSeconds);
      if (ttlSeconds % 7 === 0) staying.push(run.runId);
      else idle.append(run);
    }
    expect(queue.size).toBeLessThanOrEqual(4 * staying.length);
    expect(Array.from(queue.takeExpired(500), ({ runId }) => runId)).toEqual(staying.slice(0, 71));
    expect(Array.from(queue.takeExpired(1_000), ({ runId }) => runId)).toEqual(staying.slice(71));
    expect(queue.size).toBe(0);
  });
});
