/** Plays a scenario on anything that gives leases, and compares every answer. */
import assert from 'node:assert/strict';
import type { Reacquire, RunState } from '../lease.ts';
import type { AcquireStep, After, ClaimStep, Scenario, Step, Worker } from './scenario.ts';

type Awaitable<Value> = Value | Promise<Value>;

/** One run of something that gives leases. Each scenario gets its own. */
export interface Subject {
  /** Null when the run is held. */
  acquire(ask: SubjectAsk): Awaitable<{ readonly fencingToken: number } | null>;
  /** Whether the lease was extended. */
  heartbeat(claim: SubjectClaim): Awaitable<boolean>;
  /** Whether the run was freed. */
  release(claim: SubjectClaim): Awaitable<boolean>;
  /** Tells the run the time, where it must be told. */
  expire?(): Awaitable<void>;
  advance(ttls: number): Awaitable<void>;
  observe(): Awaitable<Observation>;
  /** Whether the claim is that of the live lease, where there is a call that says so. */
  validate?(claim: SubjectClaim): Awaitable<boolean>;
  /** Time passes by itself, so that less of the ttl is left than was said. */
  readonly timePasses?: boolean;
}

/** A worker asks for the run. */
export interface SubjectAsk {
  readonly workerId: Worker;
  readonly acquisitionId: string | undefined;
  readonly reacquire: Reacquire;
}

/** What somebody shows to prove that a lease is theirs. */
export interface SubjectClaim {
  readonly workerId: Worker;
  readonly fencingToken: number;
  readonly acquisitionId: string | undefined;
}

/** What can be seen of a run. */
export interface Observation {
  readonly state: RunState;
  /** Of the current lease, null when the run is free. */
  readonly workerId: string | null;
  readonly fencingToken: number | null;
  /** 0 when not live. */
  readonly ttlsLeft: number;
  /** The highest token ever issued for the run, 0 for none. Undefined where nothing keeps it. */
  readonly fence: number | undefined;
}

/** Rounding up to a store's unit of time may leave so much more of the ttl. */
const ROUNDING_TTLS = 0.02;

/**
 * Plays the scenario step by step, and compares every answer and all that can be seen after it.
 *
 * @throws AssertionError that names the scenario, the step, and what came instead.
 */
export async function playScenario(scenario: Scenario, subject: Subject): Promise<void> {
  const player = new Player(subject);
  for (const [index, step] of scenario.steps.entries()) {
    const place = `${scenario.id} (${scenario.title}), step ${index + 1}, ${JSON.stringify(step)}`;
    await player.take(step, place);
    await player.look(step.after, place);
  }
}

class Player {
  readonly #subject: Subject;
  /** The leases that were given out, by their names in the scenario. */
  readonly #leases = new Map<string, SubjectClaim>();
  #newestToken = 0;

  constructor(subject: Subject) {
    this.#subject = subject;
  }

  async take(step: Step, place: string): Promise<void> {
    switch (step.call) {
      case 'acquire':
        return this.#acquire(step, place);
      case 'heartbeat':
      case 'release': {
        const accepted = await this.#subject[step.call](this.#claim(step.claim));
        return assert.equal(accepted, step.expect.accepted, `${place}: accepted was ${accepted}`);
      }
      case 'expire':
        return this.#subject.expire?.();
      case 'advance':
        return this.#subject.advance(step.ttls);
    }
  }

  async #acquire({ worker, acquisition, reacquire, expect }: AcquireStep, place: string): Promise<void> {
    const ask = { workerId: worker, acquisitionId: acquisition, reacquire };
    const granted = await this.#subject.acquire(ask);
    if (expect.answer === 'held') return assert.equal(granted, null, `${place}: it was granted`);
    assert.ok(granted, `${place}: it was refused`);
    const { fencingToken } = granted;
    if (expect.token === 'new') {
      assert.ok(fencingToken > this.#newestToken, `${place}: token ${fencingToken} is not above ${this.#newestToken}`);
    } else {
      assert.equal(fencingToken, this.#newestToken, `${place}: the token was not kept`);
    }
    this.#newestToken = fencingToken;
    this.#leases.set(expect.lease, { workerId: worker, fencingToken, acquisitionId: acquisition });
  }

  #claim({ lease, change }: ClaimStep['claim']): SubjectClaim {
    const none: SubjectClaim = { workerId: 'worker-a', fencingToken: 1, acquisitionId: 'acquisition-0' };
    const claim = lease === null ? none : this.#named(lease);
    switch (change) {
      case 'none':
        return claim;
      case 'never-issued':
        return { ...claim, fencingToken: this.#newestToken + 1 };
      case 'another-worker':
        return { ...claim, workerId: claim.workerId === 'worker-a' ? 'worker-b' : 'worker-a' };
    }
  }

  #named(lease: string): SubjectClaim {
    const claim = this.#leases.get(lease);
    assert.ok(claim, `The scenario claims ${lease} before it was given out`);
    return claim;
  }

  /** Compares what can be seen. Of all leases that were given out, the live one alone is valid. */
  async look(after: After, place: string): Promise<void> {
    const seen = await this.#subject.observe();
    const current = after.lease === null ? null : this.#named(after.lease);
    assert.deepEqual(
      { state: seen.state, workerId: seen.workerId, fencingToken: seen.fencingToken },
      { state: after.state, workerId: current?.workerId ?? null, fencingToken: current?.fencingToken ?? null },
      `${place}: saw ${JSON.stringify(seen)}`,
    );
    if (seen.fence !== undefined) assert.equal(seen.fence, this.#newestToken, `${place}: fence ${seen.fence}`);
    this.#lookAtTime(seen.ttlsLeft, after, place);
    for (const [name, claim] of this.#leases) {
      const valid = await this.#subject.validate?.(claim);
      if (valid === undefined) break;
      assert.equal(valid, after.state === 'held' && name === after.lease, `${place}: valid was ${valid} for ${name}`);
    }
  }

  #lookAtTime(ttlsLeft: number, after: After, place: string): void {
    const what = `${place}: ${ttlsLeft} ttl left`;
    assert.ok(ttlsLeft <= after.ttlsLeft + ROUNDING_TTLS, what);
    if (this.#subject.timePasses) assert.ok(ttlsLeft > 0 === after.ttlsLeft > 0, what);
    else assert.ok(ttlsLeft >= after.ttlsLeft - ROUNDING_TTLS, what);
  }
}
