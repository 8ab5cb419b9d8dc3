import type { LeaseActorRef } from '../../machines/lease.logic.ts';
import type { RegistryCaller } from '../../machines/registry.caller.ts';
import type { RegistryAnswer, RegistryEvent, RegistryRecord } from '../../machines/registry.events.ts';
import type { RegistryActorRef } from '../../machines/registry.logic.ts';
import { Emitter } from '../events.ts';
import type { Inspector } from '../inspect/quiet-inspector.ts';
import type { Lease, Reacquire } from '../lease.ts';
import { checkDuration, checkFunction, checkName, checkObject, checkOneOf } from '../options.ts';
import { checkCall } from './registry-checks.ts';
import type { RegistryEvents } from './registry-events.ts';
import { emitAnswer } from './registry-events.ts';
import { readRecord } from './registry-record.ts';
import { startRegistry } from './start-registry.ts';

/** How a registry is made. */
export interface LeaseRegistryOptions {
  /** How long a lease lives without a heartbeat, in seconds. Any finite number above 0. */
  readonly ttlSeconds: number;
  /** What the live lease's own worker gets when it acquires again. @default 'refuse' */
  readonly reacquire?: Reacquire | undefined;
  /** Gets xstate's inspection events of the registry and its leases, e.g. a Stately inspector's `inspect`. */
  readonly inspect?: Inspector | undefined;
}

/**
 * Gives each run to at most one worker at a time: in memory, synchronous, with the time passed in.
 *
 * Every call takes its time from the caller, in seconds: the registry reads no clock. A `now` that goes back counts as the
 * latest seen, so nothing un-expires. Tokens are registry-wide: each successful acquire of any run gets the next integer,
 * from 1. An answer speaks of the moment it was asked for: only a fence in the storage makes a later write safe.
 *
 * Every call throws a TypeError or RangeError for an argument that makes no sense; nothing has changed then.
 *
 * @example
 * const registry = new LeaseRegistry({ ttlSeconds: 10 });
 * const lease = registry.acquire('run-1', 'worker-a', 0)!; // token 1, lives until 10
 * registry.acquire('run-1', 'worker-b', 5); // null
 * registry.acquire('run-1', 'worker-b', 10)?.fencingToken; // 2
 * registry.validate('run-1', lease.leaseId, lease.fencingToken, 11); // false
 */
export class LeaseRegistry {
  readonly #caller: RegistryCaller;
  readonly #emitter = new Emitter<RegistryEvents>();

  /**
   * @param record - for `from` alone.
   * @throws TypeError or RangeError that names the option, what was expected and what came.
   */
  constructor(options: LeaseRegistryOptions, record?: RegistryRecord) {
    checkObject('options', options);
    const { ttlSeconds, reacquire = 'refuse', inspect } = options;
    checkDuration('ttlSeconds', ttlSeconds);
    checkOneOf('reacquire', reacquire, ['refuse', 'extend']);
    this.#caller = startRegistry({ ttlSeconds, reacquire, inspect, record });
  }

  /**
   * Goes on where the registry that wrote `json` stood: the counter continues, and nothing un-expires.
   *
   * @param json - what `toJSON` returned, also after a way through JSON text.
   * @throws TypeError or RangeError for a record that is cut short, of a newer version, or contradicts itself.
   */
  static from(json: unknown, options: Pick<LeaseRegistryOptions, 'inspect'> = {}): LeaseRegistry {
    const record = readRecord(json);
    const { ttlSeconds, reacquire } = record;
    return new LeaseRegistry({ ttlSeconds, reacquire, inspect: options.inspect }, record);
  }

  /**
   * Gives the run to the worker, as a snapshot of the new lease, or null when a live lease has the run, also its own
   * worker's (`reacquire: 'extend'` changes that). A refusal consumes no token.
   *
   * @param now - seconds on the caller's clock. The lease lives until `now + ttlSeconds`, exclusive.
   * @throws RangeError after token `2^53 - 1`.
   * @see rules R1, R2, R3 and R8 in `machines/lease.machine.ts`
   */
  acquire(runId: string, workerId: string, now: number): Lease | null {
    const answer = this.#ask({ type: 'lease.acquire', runId, workerId, now });
    if (answer.type === 'lease.granted') return answer.lease;
    if (answer.type === 'lease.exhausted') throw new RangeError('No fencing token is left after 2^53 - 1');
    return null;
  }

  /**
   * Extends a live lease to `now + ttlSeconds`, and tells whether it did. `false` means that it is not live: expired (also
   * when `expiresAt` equals `now`), released or superseded. A heartbeat never revives a lease.
   *
   * @param now - seconds on the caller's clock.
   * @see rules R4 and R5 in `machines/lease.machine.ts`
   */
  heartbeat(leaseId: string, fencingToken: number, now: number): boolean {
    return this.#ask({ type: 'lease.heartbeat', leaseId, fencingToken, now }).type === 'lease.renewed';
  }

  /**
   * Whether the lease is the run's live one, at `now`. A write that follows is not covered: take-over can come between.
   *
   * @param now - seconds on the caller's clock.
   */
  validate(runId: string, leaseId: string, fencingToken: number, now: number): boolean {
    return this.#ask({ type: 'lease.validate', runId, leaseId, fencingToken, now }).type === 'lease.valid';
  }

  /**
   * Frees the run, past expiry too, and tells whether it did: only while the lease is the run's current one.
   *
   * @see rules R6 and R9 in `machines/lease.machine.ts`
   */
  release(leaseId: string, fencingToken: number): boolean {
    return this.#ask({ type: 'lease.release', leaseId, fencingToken }).type === 'lease.released';
  }

  /**
   * The leases that have lapsed by `now` and that no earlier `expire` named: the runs that need a new worker. They stay
   * current until somebody takes over. Costs by what lapsed, not by what is held.
   *
   * @param now - seconds on the caller's clock.
   * @see rule R7 in `machines/lease.machine.ts`
   */
  expire(now: number): Lease[] {
    const answer = this.#ask({ type: 'lease.expire', now });
    return answer.type === 'lease.lapsed' ? [...answer.leases] : [];
  }

  /** The run's current lease as a snapshot, live or past expiry, or null when the run is free. */
  get(runId: string): Lease | null {
    checkName('runId', runId);
    return this.#caller.runs.get(runId);
  }

  /** All current leases as snapshots, live or past expiry, in the order of their tokens. */
  leases(): Lease[] {
    return [...this.#caller.runs.leases()];
  }

  /**
   * Calls the listener for every later event of that type, and returns how to stop that. A listener may call the registry.
   * What was sent to `actor` is answered to its `replyTo`, and is not told here.
   */
  on<Type extends keyof RegistryEvents>(type: Type, listener: (event: RegistryEvents[Type]) => void): () => void {
    checkFunction('listener', listener);
    return this.#emitter.on(type, listener);
  }

  /**
   * The registry's actor, which takes calls as events too, like `registryLogic`. Its subscribers must not call the registry:
   * that throws. Listeners of `on` may.
   */
  get actor(): RegistryActorRef {
    return this.#caller.actor;
  }

  /**
   * The run's lease actor: as long as the run is owned, and for some time after. It is spawned when it is first asked for,
   * in the state that its chart has reached; where `inspect` wants to see it, as soon as the run is acquired. It is there to
   * be looked at: what is sent to it changes nothing.
   */
  actorOf(runId: string): LeaseActorRef | undefined {
    checkName('runId', runId);
    return this.#caller.runs.actorOf(runId);
  }

  /** The registry as plain data for `LeaseRegistry.from`. */
  toJSON(): RegistryRecord {
    return this.#caller.runs.toRecord();
  }

  #ask(event: RegistryEvent): RegistryAnswer {
    checkCall(event, this.#caller.runs);
    const answer = this.#caller.ask(event);
    if (this.#emitter.observed) emitAnswer(this.#emitter, answer);
    return answer;
  }
}
