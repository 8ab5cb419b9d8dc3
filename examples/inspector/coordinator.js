/**
 * Gives runs to workers, on a clock that stands still until it is told to move. Each worker keeps the last lease that it
 * got of a run in its hand, and believes in it until it is told otherwise.
 */
import { LeaseRegistry } from 'lessor';

const TTL_SECONDS = 10;

export const RUNS = ['run-1', 'run-2', 'run-3'];
export const WORKERS = ['worker-a', 'worker-b'];

export class Coordinator {
  now = 0;
  #registry;
  #hands = new Map();
  #tell;

  /** `tell` gets a sentence for everything that happens. */
  constructor({ inspect, tell }) {
    this.#registry = new LeaseRegistry({ ttlSeconds: TTL_SECONDS, inspect });
    this.#tell = (text) => tell(`${this.now} s  ${text}`);
  }

  acquire(runId, workerId) {
    const previous = this.#registry.get(runId);
    const lease = this.#registry.acquire(runId, workerId, this.now);
    if (lease) this.#hands.set(`${runId} ${workerId}`, lease);
    const answer = lease ? `granted, token ${lease.fencingToken}` : `refused, ${previous.workerId} has it`;
    this.#tell(`${workerId} acquires ${runId}: ${answer}${lease && previous ? `, after ${previous.workerId}` : ''}`);
  }

  heartbeat(runId, workerId) {
    const lease = this.inHand(runId, workerId);
    if (!lease) return this.#tell(`${workerId} has no lease on ${runId}`);
    const extended = this.#registry.heartbeat(lease.leaseId, lease.fencingToken, this.now);
    const answer = extended ? `extended to ${this.now + TTL_SECONDS} s` : 'refused, the lease is lost';
    this.#tell(`${workerId} sends a heartbeat for ${runId}: ${answer}`);
  }

  release(runId, workerId) {
    const lease = this.inHand(runId, workerId);
    if (!lease) return this.#tell(`${workerId} has no lease on ${runId}`);
    const freed = this.#registry.release(lease.leaseId, lease.fencingToken);
    this.#hands.delete(`${runId} ${workerId}`);
    this.#tell(`${workerId} releases ${runId}: ${freed ? 'free' : 'refused, the lease is not the current one'}`);
  }

  /** Tells the registry the time. Until then a chart stays in `held`, also past the ttl. */
  expire() {
    const lapsed = this.#registry.expire(this.now).map(({ runId, workerId }) => `${runId} of ${workerId}`);
    this.#tell(`expiry: ${lapsed.length > 0 ? `lapsed ${lapsed.join(', ')}` : 'nothing has lapsed'}`);
  }

  pass(seconds) {
    this.now += seconds;
    this.#tell(`${seconds} s have passed`);
  }

  inHand(runId, workerId) {
    return this.#hands.get(`${runId} ${workerId}`);
  }

  /** How the run stands now, and in which state its chart is. */
  stateOf(runId) {
    const lease = this.#registry.get(runId);
    const chart = this.#registry.actorOf(runId)?.getSnapshot().value ?? 'no actor';
    if (!lease) return { state: 'free', chart };
    const secondsLeft = lease.expiresAt - this.now;
    return { ...lease, state: secondsLeft > 0 ? 'held' : 'expired', chart, secondsLeft: Math.max(0, secondsLeft) };
  }
}

/** Acquire, heartbeat, expiry, take-over and release, one step after the other. */
export const STORY = [
  (coordinator) => coordinator.acquire('run-1', 'worker-a'),
  (coordinator) => coordinator.acquire('run-2', 'worker-b'),
  (coordinator) => coordinator.pass(4),
  (coordinator) => coordinator.heartbeat('run-1', 'worker-a'),
  (coordinator) => coordinator.acquire('run-1', 'worker-b'),
  (coordinator) => coordinator.pass(10),
  (coordinator) => coordinator.expire(),
  (coordinator) => coordinator.acquire('run-1', 'worker-b'),
  (coordinator) => coordinator.heartbeat('run-1', 'worker-a'),
  (coordinator) => coordinator.release('run-2', 'worker-b'),
  (coordinator) => coordinator.release('run-1', 'worker-b'),
];
