import type { LeaseRef } from '../lease.ts';
import type { CommitRequest, OpenRequest, RunDocument } from '../session/documents.ts';
import type { FencedStore } from '../session/fenced-store.ts';
import type { Session, SessionOptions } from '../session/session.ts';
import { openSession } from '../session/session.ts';
import { answerOf, recordOf, revokedOf, toMicroseconds } from './redis/answers.ts';
import type { Answer } from './redis/answers.ts';
import { RedisChanges } from './redis/changes.ts';
import { RedisDocuments } from './redis/documents.ts';
import { FencedCommands } from './redis/fenced.ts';
import { acquireTurns, releaseTurns } from './redis/grants.ts';
import { RedisKeys, bucketOf, hashTag } from './redis/keys.ts';
import { listRuns } from './redis/listing.ts';
import { type MarkedCall, MarkedCalls } from './redis/marked-calls.ts';
import { openRedis, type OpenRedis, type RedisStoreOptions } from './redis/open.ts';
import { renewalsOf } from './redis/renewals.ts';
import { LIST, READ, RENEW, REVOKE } from './redis/scripts.ts';
import {
  checkAcquireRequest,
  checkLeaseRef,
  checkListQuery,
  checkReadRequest,
  checkReleaseRequest,
  checkRenewRequest,
  checkRevokeRequest,
} from './requests.ts';
import type {
  AcquireRequest,
  AcquireResult,
  CallOptions,
  Durability,
  LeaseRecord,
  ListQuery,
  ReleaseRequest,
  RenewResult,
  RevokedLease,
  RevokeReason,
  RunChange,
} from './store.ts';
import type { Turns } from './turns.ts';

export type { RedisClient } from './redis/client.ts';
export type { RedisStoreOptions } from './redis/open.ts';
export { redisFunctionLibrary } from './redis/fence-scripts.ts';

/** Records that are asked for at once by `list`. */
const PAGE = 100;

/**
 * Leases in Redis 6.2 or newer, on a single server, behind sentinels, or on a cluster. Its clock is the server's.
 *
 * A token is at least the server's clock in milliseconds. So it neither repeats nor goes back when Redis forgets what it had
 * acknowledged, as it may: after a restart without the append-only file, a flush, an eviction, or the promotion of a replica
 * that had not got everything. `durability` says what was found at opening. A store that sees that its server has forgotten
 * rejects every call with `StateLostError` until it is opened anew.
 *
 * After a promotion two workers may believe that they hold a run, until the older one is at its deadline. Likewise when the
 * server's clock is stepped forward; one stepped back prolongs leases. Fenced writes of the older one are refused.
 *
 * The store works on a connection of its own, opened like the client that it is given, and one more once `changes` is
 * called. A command is sent once: what was on its way when a connection broke is `OutcomeUnknownError`.
 */
export class RedisStore implements FencedStore {
  readonly durability: Durability;
  readonly #redis: OpenRedis;
  readonly #calls: MarkedCalls;
  readonly #keys: RedisKeys;
  readonly #acquires: Turns<AcquireRequest, AcquireResult>;
  readonly #releases: Turns<ReleaseRequest, boolean>;
  readonly #changes: RedisChanges;
  readonly #documents: RedisDocuments;

  private constructor(redis: OpenRedis) {
    this.durability = redis.durability;
    this.#redis = redis;
    this.#calls = new MarkedCalls(redis);
    this.#keys = redis.keys;
    this.#changes = new RedisChanges(redis.connection, redis.keys);
    const { keys, markers, connection } = redis;
    const { isCluster } = connection;
    this.#acquires = acquireTurns(this.#calls, keys, isCluster);
    this.#releases = releaseTurns(this.#calls, keys, isCluster);
    this.#documents = new RedisDocuments({ keys, markers, isCluster, calls: this.#calls });
  }

  /**
   * Opens the leases at the server or cluster of the client, or of the URL.
   *
   * @throws TypeError when the client is none of `ioredis` or `redis`, is closed, or the URL is not one of Redis.
   * @throws RangeError when the server drops leases when its memory is full, unless `allowEviction` is set.
   * @throws StoreUnavailableError when the server cannot be reached or is a replica.
   * @example
   * await using store = await RedisStore.open({ client: new Redis() }); // or { url: 'redis://127.0.0.1:6379' }
   * for (const warning of store.durability.warnings) console.warn(warning);
   */
  static async open(options: RedisStoreOptions): Promise<RedisStore> {
    return new RedisStore(await openRedis(options));
  }

  async acquire(request: AcquireRequest, options?: CallOptions): Promise<AcquireResult> {
    checkAcquireRequest(request, options);
    return this.#acquires.ask(request, options);
  }

  /** One script for the leases of a bucket, all sent at once. */
  async renew(leases: readonly LeaseRef[], ttlSeconds: number, options?: CallOptions): Promise<readonly RenewResult[]> {
    checkRenewRequest(leases, ttlSeconds, options);
    this.#calls.checkOpen(options);
    const ttl = toMicroseconds(ttlSeconds);
    return renewalsOf(leases, async (bucket, batch) => {
      const keys = batch.map(({ runId }) => this.#keys.lease(runId));
      const refs = batch.flatMap((lease) => [lease.workerId, String(lease.fencingToken), lease.acquisitionId]);
      const reply = await this.#calls.send(RENEW, { bucket, keys, args: [ttl, ...refs] }, true, options);
      return (reply[1] as readonly unknown[]).map(answerOf);
    });
  }

  async release(lease: ReleaseRequest, options?: CallOptions): Promise<boolean> {
    checkReleaseRequest(lease, options);
    return this.#releases.ask(lease, options);
  }

  async revoke(runId: string, why: RevokeReason, options?: CallOptions): Promise<RevokedLease | null> {
    checkRevokeRequest(runId, why, options);
    const answer = await this.#calls.ask(REVOKE, runId, this.#callOn(runId, [why.by, why.reason]), options);
    return answer[0] === 'free' ? null : revokedOf(runId, answer);
  }

  async read(runId: string, options?: CallOptions): Promise<LeaseRecord | null> {
    checkReadRequest(runId, options);
    const answer = await this.#read(runId, options);
    return answer[0] === 'none' ? null : recordOf(runId, answer);
  }

  /** At most some 16,000 names are held at a time. A run whose first lease begins meanwhile may be left out. */
  async *list(query: ListQuery = {}, options?: CallOptions): AsyncIterableIterator<LeaseRecord> {
    checkListQuery(query, options);
    this.#calls.checkOpen(options);
    const { prefix = '', workerId, state } = query;
    for await (const runIds of listRuns(prefix, (...page) => this.#readPage(...page, options))) {
      for (let start = 0; start < runIds.length; start += PAGE) {
        const page = runIds.slice(start, start + PAGE);
        const records = await Promise.all(page.map((runId) => this.read(runId, options)));
        for (const record of records) {
          if (record === null || (workerId ?? record.workerId) !== record.workerId) continue;
          if ((state ?? record.state) === record.state) yield record;
        }
      }
    }
  }

  async currentFence(runId: string, options?: CallOptions): Promise<number> {
    checkReadRequest(runId, options);
    const answer = await this.#read(runId, options);
    return answer[0] === 'none' ? Number(answer[1]) : recordOf(runId, answer).fence;
  }

  /**
   * Opens a fenced read-modify-write over runs' documents. On a cluster its runs must lie in one slot. See {@link openSession}.
   */
  session(options: SessionOptions): Promise<Session> {
    return openSession(this, options);
  }

  openDocuments(request: OpenRequest, options?: CallOptions): Promise<readonly RunDocument[]> {
    return this.#documents.openDocuments(request, options);
  }

  commitDocuments(request: CommitRequest, options?: CallOptions): Promise<void> {
    return this.#documents.commitDocuments(request, options);
  }

  /** Commands of the user's own, run in one step with the check of the lease. See {@link FencedCommands}. */
  fenced(lease: LeaseRef): FencedCommands {
    checkLeaseRef(lease);
    return new FencedCommands(lease, this.#keys, this.#calls);
  }

  /** What a key's name must hold to lie in the run's slot of a cluster, as `{17}`. */
  hashTag(runId: string): string {
    checkReadRequest(runId);
    return hashTag(runId);
  }

  /** The key that holds the run's lease: the first one of `FCALL lessor_exec`, see {@link redisFunctionLibrary}. */
  leaseKey(runId: string): string {
    checkReadRequest(runId);
    return this.#keys.lease(runId);
  }

  /** Over a connection of its own. What comes first, once the server has begun to send them, is one hint for each run. */
  changes(runIds: readonly string[], { signal }: { readonly signal: AbortSignal }): AsyncIterable<RunChange> {
    this.#calls.checkOpen();
    return this.#changes.of(runIds, signal);
  }

  /** Ends the store's own connections; a client that was given stays open. Calls that are on their way are unknown. */
  async close(): Promise<void> {
    if (!this.#calls.close()) return;
    this.#changes.close();
    this.#redis.connection.end();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #read(runId: string, options: CallOptions | undefined): Promise<Answer> {
    return this.#calls.ask(READ, runId, this.#callOn(runId, []), options, false);
  }

  #callOn(runId: string, args: readonly string[]): MarkedCall {
    return { bucket: bucketOf(runId), keys: [this.#keys.lease(runId)], args };
  }

  async #readPage(bucket: number, first: string, count: number, options?: CallOptions): Promise<readonly string[]> {
    const keys = [this.#keys.runs(bucket)];
    const call = { bucket, keys, args: [first, '+', String(count)] };
    return answerOf((await this.#calls.send(LIST, call, false, options))[1]);
  }
}
