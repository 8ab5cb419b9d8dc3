/** What the scenarios are played on, besides stores. */
import type { ActorRefFrom } from 'xstate';
import { createActor } from 'xstate';
import type { LeaseContext, LeaseEvent } from '../../machines/lease.machine.ts';
import { leaseMachine } from '../../machines/lease.machine.ts';
import type { Claim } from '../../machines/lease.rules.ts';
import { isExpired, isLive, leaseIdOf } from '../../machines/lease.rules.ts';
import type { LeaseState } from '../../machines/lease.table.ts';
import { rowFor } from '../../machines/lease.table.ts';
import type { RegistryEvent } from '../../machines/registry.events.ts';
import type { Lease } from '../../src/lease.ts';
import { LeaseRegistry } from '../../src/registry/lease-registry.ts';
import type { Observation, Subject, SubjectAsk, SubjectClaim } from '../../src/testing/play.ts';

export const TTL_SECONDS = 10;
const RUN = 'run';

/** A chart that steps: the machine itself, or what it was compiled to. It is given a new token with each acquire. */
abstract class ChartSubject implements Subject {
  protected now = 0;
  #nextToken = 1;

  protected abstract get context(): LeaseContext;
  protected abstract send(event: LeaseEvent): void;

  acquire(ask: SubjectAsk): { fencingToken: number } | null {
    const { now } = this;
    const fencingToken = this.#nextToken;
    if (!this.#changes({ type: 'acquire', ...ask, fencingToken, now, ttlSeconds: TTL_SECONDS })) return null;
    const { fencingToken: token } = this.context.lease!;
    if (token === fencingToken) this.#nextToken += 1;
    return { fencingToken: token };
  }

  heartbeat(claim: SubjectClaim): boolean {
    return this.#changes({ type: 'heartbeat', ...chartClaim(claim), now: this.now, ttlSeconds: TTL_SECONDS });
  }

  release(claim: SubjectClaim): boolean {
    return this.#changes({ type: 'release', ...chartClaim(claim) });
  }

  expire(): void {
    this.send({ type: 'expire', now: this.now });
  }

  advance(ttls: number): void {
    this.now += ttls * TTL_SECONDS;
  }

  observe(): Observation {
    return observationOf(this.context.lease, this.now, undefined);
  }

  validate(claim: SubjectClaim): boolean {
    const { lease } = this.context;
    return lease !== null && isLive(lease, chartClaim(claim), this.now);
  }

  #changes(event: LeaseEvent): boolean {
    const before = this.context.lease;
    this.send(event);
    return this.context.lease !== before;
  }
}

export class MachineSubject extends ChartSubject {
  readonly #actor: ActorRefFrom<typeof leaseMachine> = createActor(leaseMachine, { input: { runId: RUN } }).start();

  protected override get context(): LeaseContext {
    return this.#actor.getSnapshot().context;
  }

  protected override send(event: LeaseEvent): void {
    this.#actor.send(event);
  }
}

export class TableSubject extends ChartSubject {
  #state: LeaseState = 'free';
  #context: LeaseContext = { runId: RUN, lease: null };

  protected override get context(): LeaseContext {
    return this.#context;
  }

  protected override send(event: LeaseEvent): void {
    const row = rowFor(this.#state, this.#context, event);
    if (row === undefined) return;
    this.#state = row.target;
    if (row.update) this.#context = { runId: RUN, lease: row.update(this.#context, event) };
  }
}

/** The registry through its methods. They take no `reacquire` per call: one that extends goes to its actor. */
export class RegistrySubject implements Subject {
  readonly #registry = new LeaseRegistry({ ttlSeconds: TTL_SECONDS });
  #now = 0;

  acquire({ workerId, reacquire }: SubjectAsk): Lease | null {
    if (reacquire === 'refuse') return this.#registry.acquire(RUN, workerId, this.#now);
    return acquireByActor(this.#registry, { workerId, reacquire, now: this.#now });
  }

  heartbeat({ workerId, fencingToken }: SubjectClaim): boolean {
    return this.#registry.heartbeat(leaseIdOf(RUN, workerId, fencingToken), fencingToken, this.#now);
  }

  release({ workerId, fencingToken }: SubjectClaim): boolean {
    return this.#registry.release(leaseIdOf(RUN, workerId, fencingToken), fencingToken);
  }

  expire(): void {
    this.#registry.expire(this.#now);
  }

  advance(ttls: number): void {
    this.#now += ttls * TTL_SECONDS;
  }

  observe(): Observation {
    return observationOf(this.#registry.get(RUN), this.#now, this.#registry.toJSON().nextToken - 1);
  }

  validate({ workerId, fencingToken }: SubjectClaim): boolean {
    return this.#registry.validate(RUN, leaseIdOf(RUN, workerId, fencingToken), fencingToken, this.#now);
  }
}

/** The registry through its actor, where leases carry acquisition ids. */
export class RegistryActorSubject implements Subject {
  readonly #registry = new LeaseRegistry({ ttlSeconds: TTL_SECONDS });
  #now = 0;

  acquire(ask: SubjectAsk): Lease | null {
    return acquireByActor(this.#registry, { ...ask, now: this.#now });
  }

  heartbeat(claim: SubjectClaim): boolean {
    const answer = send(this.#registry, { type: 'lease.heartbeat', ...chartClaim(claim), now: this.#now });
    return answer === 'lease.renewed';
  }

  release(claim: SubjectClaim): boolean {
    return send(this.#registry, { type: 'lease.release', ...chartClaim(claim) }) === 'lease.released';
  }

  expire(): void {
    send(this.#registry, { type: 'lease.expire', now: this.#now });
  }

  advance(ttls: number): void {
    this.#now += ttls * TTL_SECONDS;
  }

  observe(): Observation {
    return observationOf(this.#registry.get(RUN), this.#now, this.#registry.toJSON().nextToken - 1);
  }

  validate(claim: SubjectClaim): boolean {
    const event = { type: 'lease.validate', runId: RUN, ...chartClaim(claim), now: this.#now } as const;
    return send(this.#registry, event) === 'lease.valid';
  }
}

function acquireByActor(registry: LeaseRegistry, ask: Partial<SubjectAsk> & { workerId: string; now: number }) {
  registry.actor.send({ type: 'lease.acquire', runId: RUN, ...ask });
  const { answer } = registry.actor.getSnapshot();
  return answer?.type === 'lease.granted' ? answer.lease : null;
}

function send(registry: LeaseRegistry, event: RegistryEvent): string | undefined {
  registry.actor.send(event);
  return registry.actor.getSnapshot().answer?.type;
}

function chartClaim({ workerId, fencingToken, acquisitionId }: SubjectClaim): Claim {
  return { leaseId: leaseIdOf(RUN, workerId, fencingToken), fencingToken, acquisitionId };
}

function observationOf(
  lease: Pick<Lease, 'workerId' | 'fencingToken' | 'expiresAt'> | null,
  now: number,
  fence: number | undefined,
): Observation {
  if (lease === null) return { state: 'free', workerId: null, fencingToken: null, ttlsLeft: 0, fence };
  const { workerId, fencingToken, expiresAt } = lease;
  const ttlsLeft = Math.max(0, (expiresAt - now) / TTL_SECONDS);
  return { state: isExpired(lease, now) ? 'expired' : 'held', workerId, fencingToken, ttlsLeft, fence };
}
