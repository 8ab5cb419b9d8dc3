import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Lease } from '../../src/index.ts';
import { LeaseRegistry } from '../../src/index.ts';

/** What the contract says, as plainly as it can be written: no actors, no chart, no index. */
class Reference {
  readonly #leases = new Map<string, Lease>();
  readonly #ttlSeconds: number;
  readonly #extend: boolean;
  #nextToken = 1;
  #latestNow = -Infinity;

  constructor(ttlSeconds: number, extend: boolean) {
    this.#ttlSeconds = ttlSeconds;
    this.#extend = extend;
  }

  acquire(runId: string, workerId: string, now: number): Lease | null {
    const at = this.#advance(now);
    const lease = this.#leases.get(runId);
    if (lease && lease.expiresAt > at) {
      if (!this.#extend || lease.workerId !== workerId) return null;
      lease.expiresAt = at + this.#ttlSeconds;
      return { ...lease };
    }
    const fencingToken = this.#nextToken++;
    const leaseId = `${runId}:${workerId}:${fencingToken}`;
    const granted = { runId, workerId, leaseId, fencingToken, expiresAt: at + this.#ttlSeconds };
    this.#leases.set(runId, granted);
    return { ...granted };
  }

  heartbeat(leaseId: string, fencingToken: number, now: number): boolean {
    const at = this.#advance(now);
    const lease = this.#find(leaseId, fencingToken);
    if (!lease || lease.expiresAt <= at) return false;
    lease.expiresAt = at + this.#ttlSeconds;
    return true;
  }

  validate(runId: string, leaseId: string, fencingToken: number, now: number): boolean {
    const at = this.#advance(now);
    const lease = this.#find(leaseId, fencingToken);
    return lease?.runId === runId && lease.expiresAt > at;
  }

  release(leaseId: string, fencingToken: number): boolean {
    const lease = this.#find(leaseId, fencingToken);
    return lease !== undefined && this.#leases.delete(lease.runId);
  }

  leases(): Lease[] {
    return [...this.#leases.values()].sort((one, other) => one.fencingToken - other.fencingToken);
  }

  #find(leaseId: string, fencingToken: number): Lease | undefined {
    return [...this.#leases.values()].find((lease) => lease.leaseId === leaseId && lease.fencingToken === fencingToken);
  }

  #advance(now: number): number {
    return (this.#latestNow = Math.max(this.#latestNow, now));
  }
}

const TTL = 10;
const RUNS = ['run-1', 'run-2', '__proto__', 'a:b'];
const WORKERS = ['worker-a', 'worker-b', 'b:c'];

/** Steps of time around the ttl, back and far. */
const step = fc.constantFrom(0, 1, TTL / 2, TTL - 2 ** -20, TTL, TTL + 2 ** -20, 3 * TTL, 1e6, -1, -TTL);
/** Which of the leases granted so far: counted from the newest, or one that never was. */
const which = fc.constantFrom(0, 1, 2, 3, 7, -1);

const command = fc.record({
  call: fc.constantFrom('acquire', 'acquire', 'heartbeat', 'validate', 'release', 'expire', 'json'),
  step,
  which,
  runId: fc.constantFrom(...RUNS),
  workerId: fc.constantFrom(...WORKERS),
  mixed: fc.boolean(),
});

/** Numbers of lists; a longer search: `LESSOR_RUNS=200000 npx vitest run test/registry`. */
const numRuns = Number(process.env['LESSOR_RUNS'] ?? 3000);

for (const reacquire of ['refuse', 'extend'] as const) {
  it(`answers random calls at random times as the plain reference does, with reacquire '${reacquire}'`, () => {
    const property = fc.property(fc.array(command, { maxLength: 100 }), (commands) => {
      let registry = new LeaseRegistry({ ttlSeconds: TTL, reacquire });
      const reference = new Reference(TTL, reacquire === 'extend');
      const granted: Lease[] = [];
      const named = new Set<string>();
      let now = 0;
      for (const { call, step: by, which: back, runId, workerId, mixed } of commands) {
        now += by;
        const lease = granted.at(-1 - back) ?? { runId, leaseId: `${runId}:${workerId}:99`, fencingToken: 99 };
        const token = mixed ? Math.max(1, lease.fencingToken - 1) : lease.fencingToken;
        switch (call) {
          case 'acquire': {
            const answer = registry.acquire(runId, workerId, now);
            expect(answer).toEqual(reference.acquire(runId, workerId, now));
            if (answer) granted.push(answer);
            break;
          }
          case 'heartbeat':
            expect(registry.heartbeat(lease.leaseId, token, now)).toBe(reference.heartbeat(lease.leaseId, token, now));
            break;
          case 'validate':
            expect(registry.validate(runId, lease.leaseId, token, now)).toBe(
              reference.validate(runId, lease.leaseId, token, now),
            );
            break;
          case 'release':
            expect(registry.release(lease.leaseId, token)).toBe(reference.release(lease.leaseId, token));
            break;
          case 'expire': {
            const { latestNow } = registry.toJSON();
            const at = Math.max(latestNow ?? now, now);
            const lapsed = reference
              .leases()
              .filter(({ leaseId, expiresAt }) => expiresAt <= at && !named.has(leaseId));
            const answer = registry.expire(now).sort((one, other) => one.fencingToken - other.fencingToken);
            expect(answer).toEqual(lapsed);
            for (const { leaseId } of answer) named.add(leaseId);
            // The reference sees the time as well.
            reference.validate(runId, '', 1, now);
            break;
          }
          case 'json':
            registry = LeaseRegistry.from(JSON.parse(JSON.stringify(registry)));
        }
        expect(registry.leases()).toEqual(reference.leases());
      }
    });
    fc.assert(property, { numRuns });
  }, 300_000);
}
