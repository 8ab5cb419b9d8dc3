/** A worker's way to the store: requests and replies that are late, lost or doubled, and a store that is away at times. */
import { OutcomeUnknownError, StoreUnavailableError } from '../../src/errors.ts';
import type { LeaseRef, StoredLease } from '../../src/lease.ts';
import type { MemoryStore } from '../../src/stores/memory.ts';
import type {
  AcquireRequest,
  AcquireResult,
  CallOptions,
  LeaseStore,
  ReleaseRequest,
  RenewResult,
} from '../../src/stores/store.ts';
import type { Machine, World } from './world.ts';

/** What can be wrong with a store that the simulation must notice. */
export interface StoreFault {
  /** A repeated acquire is answered from memory, and not extended. */
  readonly answersRepeatsFromMemory?: boolean;
}

export interface NetworkOptions extends StoreFault {
  readonly world: World;
  readonly machine: Machine;
  readonly store: MemoryStore;
  readonly ttlSeconds: number;
  /** Moments worth hitting exactly: an expiry, a worker's deadline. */
  readonly moments: () => readonly number[];
  /** Told of every grant, whether or not its answer arrives. */
  readonly onGranted: (lease: StoredLease) => void;
  /** Whether anything goes wrong at all. */
  readonly isCalm: () => boolean;
}

export class Network implements LeaseStore {
  readonly durability = { survives: 'nothing', warnings: [] } as const;
  readonly #options: NetworkOptions;
  readonly #remembered = new Map<string, AcquireResult>();

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  acquire(request: AcquireRequest, options?: CallOptions): Promise<AcquireResult> {
    const { store, answersRepeatsFromMemory = false } = this.#options;
    return this.call(options, async () => {
      const known = this.#remembered.get(request.acquisitionId);
      if (answersRepeatsFromMemory && known !== undefined) return known;
      const answer = await store.acquire(request);
      if (answer.status === 'granted') {
        this.#remembered.set(request.acquisitionId, answer);
        this.#options.onGranted(answer.lease);
      }
      return answer;
    });
  }

  renew(leases: readonly LeaseRef[], ttlSeconds: number, options?: CallOptions): Promise<readonly RenewResult[]> {
    return this.call(options, () => this.#options.store.renew(leases, ttlSeconds));
  }

  release(lease: ReleaseRequest, options?: CallOptions): Promise<boolean> {
    return this.call(options, () => this.#options.store.release(lease));
  }

  /** The effect is a moment at the store. Whoever gives up hears no more of it, and it may still come. */
  call<Answer>({ signal }: CallOptions = {}, effect: () => Promise<Answer>): Promise<Answer> {
    const { world, machine, isCalm } = this.#options;
    return new Promise((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(new OutcomeUnknownError('Given up')), { once: true });
      const reply = (settle: () => void): void => world.after(this.#delay(), () => machine.act(settle));
      const arrive = (isAnswered: boolean): void => {
        effect().then(
          (answer) => isAnswered && reply(() => resolve(answer)),
          (error: unknown) => isAnswered && reply(() => reject(error)),
        );
      };
      const fate = isCalm() ? 1 : world.random();
      const { ttlSeconds } = this.#options;
      if (fate < 0.05) return;
      if (fate < 0.1) reply(() => reject(new StoreUnavailableError('Away')));
      else if (fate < 0.15) world.after(this.#delay(), () => arrive(false));
      else if (fate < 0.22) world.after(world.between(0, 1.5 * ttlSeconds), () => arrive(true));
      else world.after(this.#delay(), () => arrive(true));
      if (fate > 0.22 && fate < 0.27) world.after(world.between(0, ttlSeconds), () => arrive(false));
    });
  }

  #delay(): number {
    const { world, ttlSeconds, isCalm, moments } = this.#options;
    if (isCalm()) return 0.001;
    const moment = world.pick(moments());
    if (moment !== undefined && moment > world.now && world.chance(0.15)) {
      return moment - world.now + world.pick([0, 0, 1e-6, -1e-6, 0.01, -0.01]);
    }
    return world.chance(0.5) ? world.between(0, 0.01) : world.between(0, ttlSeconds / 4);
  }

  read(...call: Parameters<LeaseStore['read']>): ReturnType<LeaseStore['read']> {
    return this.#options.store.read(...call);
  }

  revoke(...call: Parameters<LeaseStore['revoke']>): ReturnType<LeaseStore['revoke']> {
    return this.#options.store.revoke(...call);
  }

  list(...call: Parameters<LeaseStore['list']>): ReturnType<LeaseStore['list']> {
    return this.#options.store.list(...call);
  }

  currentFence(...call: Parameters<LeaseStore['currentFence']>): ReturnType<LeaseStore['currentFence']> {
    return this.#options.store.currentFence(...call);
  }

  async close(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {}
}
