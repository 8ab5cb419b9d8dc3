/** A worker's store, and how it writes its own table or key beside it. */
import { createRequire } from 'node:module';
import { PostgresStore } from '../../dist/src/stores/postgres.js';
import { RedisStore } from '../../dist/src/stores/redis.js';
import { SqliteStore } from '../../dist/src/stores/sqlite.js';

const TABLE_UPDATE = (run, status, token) => `UPDATE fenced SET status = ${status}, token = ${token} WHERE id = ${run}`;

export async function openSqlite(url) {
  const Driver = createRequire(import.meta.url)('libsql');
  const file = url.slice('sqlite:'.length);
  const store = await SqliteStore.open({ database: new Driver(file), ownsDatabase: true, busyTimeoutSeconds: 0.3 });
  const tx = new Driver(file);
  tx.exec('PRAGMA busy_timeout = 300');
  return {
    store,
    readStatus: async (_, runId) => tx.prepare('SELECT status FROM job WHERE id = ?').get(runId).status,
    async writeTable({ runId, fencingToken }, status) {
      tx.prepare(TABLE_UPDATE('?', '?', '?')).run(status, fencingToken, runId);
    },
    async transact({ runId, status, fence }) {
      tx.exec('BEGIN');
      try {
        const seen = await fence(tx);
        tx.prepare('UPDATE job SET status = ? WHERE id = ?').run(status, runId);
        tx.exec('COMMIT');
        return seen;
      } catch (error) {
        if (tx.inTransaction) tx.exec('ROLLBACK');
        throw error;
      }
    },
  };
}

export async function openPostgres(url) {
  const pg = createRequire(import.meta.url)('pg');
  const pool = new pg.Pool({ connectionString: url });
  pool.on('error', () => undefined);
  const store = await PostgresStore.open({ pool, requestTimeoutSeconds: 2 });
  return {
    store,
    readStatus: async (tx, runId) => (await tx.query('SELECT status FROM job WHERE id = $1', [runId])).rows[0].status,
    async writeTable({ runId, fencingToken }, status) {
      await pool.query(TABLE_UPDATE('$3', '$1', '$2'), [status, fencingToken, runId]);
    },
    async transact({ runId, status, fence }) {
      const client = await pool.connect();
      client.on('error', () => undefined);
      try {
        await client.query(`BEGIN; SET LOCAL lock_timeout = '300ms'`);
        const seen = await fence(client);
        await client.query('UPDATE job SET status = $2 WHERE id = $1', [runId, status]);
        await client.query('COMMIT');
        client.release();
        return seen;
      } catch (error) {
        client.release(true);
        throw error;
      }
    },
  };
}

/** A cluster's URL is that of one of its nodes. */
export async function openRedis(url) {
  const { Cluster, Redis } = createRequire(import.meta.url)('ioredis');
  const { searchParams, port } = new URL(url);
  const isCluster = searchParams.has('cluster');
  const client = isCluster ? new Cluster([{ host: '127.0.0.1', port: Number(port) }]) : new Redis(url);
  const store = await RedisStore.open({ client });
  const keyOf = (runId) => `job:${store.hashTag(runId)}:${runId}`;
  // `SET key value GET` answers with what stood there before.
  const setting = (runId, status) => ['SET', keyOf(runId), status, 'GET'];
  const calling = ({ runId, workerId, fencingToken, acquisitionId }, status) => {
    const keys = [store.leaseKey(runId), keyOf(runId)];
    return ['FCALL', 'lessor_exec', 2, ...keys, workerId, fencingToken, acquisitionId, ...setting(runId, status)];
  };
  return {
    store,
    async writeKey(lease, status) {
      const [seen] = await store.fenced(lease).exec([setting(lease.runId, status)]);
      return seen;
    },
    callFunction: (lease, status) => client.call(...calling(lease, status)),
    async queueFunction(lease, status) {
      await client.call('MULTI');
      await client.call(...calling(lease, status));
      return async () => {
        const [seen] = await client.call('EXEC');
        if (seen instanceof Error) throw seen;
        return seen;
      };
    },
  };
}
