/** Installing, opening, what the schema refuses, and waking waiters. */
import { createRequire } from 'node:module';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migratePostgres, PostgresStore } from '../../src/stores/postgres.ts';
import { afterPrefix } from '../../src/stores/postgres/rows.ts';
import { findPgbouncer, startPgbouncer } from '../services/pgbouncer.ts';
import { findPostgres, openPool, startPostgres, type Postgres } from '../services/postgres.ts';
import { ask, freshRun, granted, pause, until } from './postgres-fixtures.ts';

const found = await findPostgres();
const foundPgbouncer = found && (await findPgbouncer());

describe('PK2. A client of the wrong kind is refused when the store is made', () => {
  const require = createRequire(import.meta.url);
  const refused: Record<string, [options: unknown, message: RegExp]> = {
    nothing: [{}, /exactly one of `pool` and `url`, got neither/],
    both: [{ pool: {}, url: 'postgres://x' }, /got both/],
    'an empty object': [{ pool: {} }, /to be a Pool of `pg`, got an object of kind Object/],
    'a number': [{ pool: 7 }, /`pool` to be an object, got 7/],
    'a client of ioredis': [
      { pool: new (require('ioredis').Redis)({ lazyConnect: true }) },
      /Pool of `pg`, got an object of kind/,
    ],
    'a client of redis': [{ pool: require('redis').createClient() }, /Pool of `pg`, got/],
    'a single client of pg': [
      { pool: new pg.Client() },
      /Pool of `pg`, got a single Client: make it with `new pg.Pool/,
    ],
    'a Redis URL': [{ url: 'redis://127.0.0.1' }, /postgres:\/\/ or postgresql:\/\/, got redis:/],
    'a path': [{ url: '/srv/leases.db' }, /postgres:\/\/ or postgresql:\/\/, got no scheme/],
  };
  for (const [what, [options, message]] of Object.entries(refused)) {
    it(`PK2 ${what}: the error says what was expected and what came`, async () => {
      const error: unknown = await PostgresStore.open(options as never).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(TypeError);
      expect((error as Error).message).toMatch(message);
    });
  }

  it('PK2 a pool that was ended: the error says so', async () => {
    const pool = new pg.Pool();
    await pool.end();
    await expect(PostgresStore.open({ pool })).rejects.toThrow(/open Pool of `pg`, got one that was ended/);
  });

  it('a bad setting is refused before any connection is made', async () => {
    const url = 'postgres://127.0.0.1:1/none';
    for (const schema of ['', 'a\0b', 'x'.repeat(57), 'a$b'])
      await expect(PostgresStore.open({ url, schema })).rejects.toThrow(RangeError);
    await expect(PostgresStore.open({ url, requestTimeoutSeconds: 0 })).rejects.toThrow(RangeError);
    await expect(PostgresStore.open({ url, failover: 'maybe' as never })).rejects.toThrow(TypeError);
  });
});

it('the name after a prefix is the first that does not begin with it', () => {
  expect(afterPrefix('')).toBeNull();
  expect(afterPrefix('job-')).toBe('job.');
  expect(afterPrefix('\ud7ff')).toBe('\ue000');
  expect(afterPrefix('a\u{10ffff}\u{10ffff}')).toBe('b');
  expect(afterPrefix('\u{10ffff}')).toBeNull();
  expect(afterPrefix('a\u{1f600}')).toBe('a\u{1f601}');
});

// Where it cannot be had: a line says so on a laptop, and CI fails.
describe.skipIf(found === null)("PostgreSQL's schema", { timeout: 30_000 }, () => {
  let server: Postgres;
  let pool: pg.Pool;
  let store: PostgresStore;

  beforeAll(async () => {
    server = await startPostgres();
    pool = openPool(server.url);
    await migratePostgres({ pool });
    store = await PostgresStore.open({ pool });
  }, 60_000);

  afterAll(async () => {
    await store.close();
    await pool.end();
    await server.close();
  });

  it('migrating is safe for many at once, and changes nothing the second time', async () => {
    const runs = await Promise.all(
      Array.from({ length: 8 }, () => migratePostgres({ url: server.url, schema: 'many' })),
    );
    expect(runs.filter(({ from }) => from === 0)).toHaveLength(1);
    expect(runs.every(({ to }) => to === 1)).toBe(true);
    const before = await server.psql('SELECT * FROM many.meta');
    expect(await migratePostgres({ pool, schema: 'many' })).toEqual({ from: 1, to: 1 });
    expect(await server.psql('SELECT * FROM many.meta')).toEqual(before);
  });

  it('schemas are apart from each other: each counts its own tokens', async () => {
    await migratePostgres({ pool, schema: 'other' });
    const other = await PostgresStore.open({ pool, schema: 'other' });
    const runId = freshRun();
    await store.release(await granted(store, ask(runId)));
    await granted(store, ask(runId));
    expect(await granted(other, ask(runId))).toMatchObject({ fencingToken: 1 });
    await other.close();
  });

  it('a missing schema, a newer version and a lost marker are refused at opening, with what to do', async () => {
    await expect(PostgresStore.open({ pool, schema: 'nowhere' })).rejects.toThrow(
      /no schema "nowhere".*lessor migrate/,
    );
    await migratePostgres({ pool, schema: 'newer' });
    await pool.query('UPDATE newer.meta SET version = 2');
    await expect(PostgresStore.open({ pool, schema: 'newer' })).rejects.toThrow(/version 2, and this library needs 1/);
    await expect(migratePostgres({ pool, schema: 'newer' })).rejects.toThrow(/version 2, and this library knows 1/);
    await pool.query('ALTER TABLE newer.meta DISABLE TRIGGER ALL; DELETE FROM newer.meta');
    await expect(PostgresStore.open({ pool, schema: 'newer' })).rejects.toThrow(/lost its marker/);
  });

  it('a database of another encoding than UTF8 is refused, since it could not keep every name', async () => {
    const url = await server.createDatabase('ascii', `TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'`);
    await expect(migratePostgres({ url })).rejects.toThrow(/encoding UTF8, got SQL_ASCII/);
  });

  it('TK15. A fence never goes down: the schema refuses what is tried by hand', async () => {
    const lease = await granted(store, ask(freshRun()));
    const { runId } = lease;
    await store.release(lease);
    await granted(store, ask(runId));
    await pool.query('INSERT INTO lessor.fence VALUES ($1, 2, $2)', [runId, 'x']);
    const run = `'${runId}'`;
    const attempts = [
      `DELETE FROM lessor.lease WHERE run_id = ${run}`,
      `DELETE FROM lessor.fence WHERE run_id = ${run}`,
      'DELETE FROM lessor.meta',
      'TRUNCATE lessor.lease',
      'TRUNCATE lessor.fence, lessor.meta',
      `UPDATE lessor.lease SET fencing_token = 1 WHERE run_id = ${run}`,
      `UPDATE lessor.fence SET fencing_token = 1 WHERE run_id = ${run}`,
      `UPDATE lessor.lease SET run_id = 'elsewhere' WHERE run_id = ${run}`,
      `UPDATE lessor.lease SET fencing_token = 9007199254740992 WHERE run_id = ${run}`,
      `UPDATE lessor.meta SET marker = 'mine'`,
      'UPDATE lessor.meta SET token_floor = -1',
      `INSERT INTO lessor.lease SELECT * FROM lessor.lease ON CONFLICT (run_id) DO UPDATE SET fencing_token = 1`,
    ];
    for (const attempt of attempts) await expect(pool.query(attempt), attempt).rejects.toMatchObject({ code: /^23/ });
    expect(await store.read(runId)).toMatchObject({ state: 'held', fencingToken: 2, fence: 2 });
  });

  it('TK15. A run costs a bounded space, however often it was leased', async () => {
    await migratePostgres({ pool, schema: 'large' });
    const large = await PostgresStore.open({ pool, schema: 'large', requestTimeoutSeconds: 25 });
    const runIds = Array.from({ length: 1000 }, freshRun);
    const size = async () => {
      await pool.query('VACUUM large.lease');
      return Number((await server.psql(`SELECT pg_total_relation_size('large.lease') AS size`))[0]!['size']);
    };
    await Promise.all(runIds.map(async (runId) => large.release(await granted(large, ask(runId)))));
    const full = await size();
    // Some 600 bytes here, with names of 40 characters: how full the pages get varies with the racing connections.
    expect(full / runIds.length).toBeLessThan(1000);
    const often = runIds.slice(0, 20);
    for (let round = 0; round < 50; round += 1) {
      await Promise.all(often.map(async (runId) => large.release(await granted(large, ask(runId)))));
    }
    expect(await size()).toBeLessThan(full * 1.5);
    expect(await large.currentFence(often[7]!)).toBe(51);
    await large.close();
  });

  it("TK15 B10 after yesterday's dump was restored and the fences raised, no token is at or below one issued before", async () => {
    const url = await server.createDatabase('before');
    await migratePostgres({ url });
    const before = await PostgresStore.open({ url });
    expect(before.durability.warnings.join()).not.toMatch(/raise_fences/);
    const runId = freshRun();
    await granted(before, ask(runId, { ttlSeconds: 0.001 }));
    const yesterday = await server.dump('before');
    let newest = 0;
    for (let grant = 0; grant < 5; grant += 1) {
      const lease = await granted(before, ask(runId));
      newest = lease.fencingToken;
      await before.release(lease);
    }
    const inBetween = await granted(before, ask(freshRun()));
    await before.close();

    const restored = await server.createDatabase('after');
    await server.restore('after', yesterday);
    const warned = await PostgresStore.open({ url: restored });
    expect(warned.durability.warnings.join()).toMatch(/raise_fences\(1000000\)/);
    await server.psql('SELECT lessor.raise_fences(1000000)', 'after');
    const after = await PostgresStore.open({ url: restored });
    expect(after.durability.warnings.join()).not.toMatch(/raise_fences/);
    expect((await granted(after, ask(runId))).fencingToken).toBeGreaterThan(newest);
    expect((await granted(after, ask(inBetween.runId))).fencingToken).toBeGreaterThan(inBetween.fencingToken);
    expect(await after.renew([inBetween], 30)).toMatchObject([{ status: 'lost' }]);
    await Promise.all([warned.close(), after.close()]);
  });

  it('B10 an open store notices that a dump was restored over it', async () => {
    const url = await server.createDatabase('over');
    await migratePostgres({ url });
    const open = await PostgresStore.open({ url });
    const lease = await granted(open, ask(freshRun()));
    const dump = await server.dump('over');
    await server.psql('DROP SCHEMA lessor CASCADE', 'over');
    await server.restore('over', dump);
    await expect(open.renew([lease], 30)).rejects.toMatchObject({ code: 'STATE_LOST' });
    await open.close();
  });

  it('B9 what the server can lose is told', async () => {
    expect(store.durability.survives).toBe('process-crash');
    expect(store.durability.warnings.join('\n')).toMatch(/fsync = off[^]*synchronous_standby_names is empty/);
  });

  it('C13 a waiter is woken by a grant, a release and a revocation, over any store, and again after its connection broke', async () => {
    const waiter = await PostgresStore.open({ url: server.url });
    const [runId, another] = [freshRun(), freshRun()];
    const controller = new AbortController();
    let heard = 0;
    const listening = (async () => {
      for await (const change of waiter.changes([runId, another], { signal: controller.signal })) {
        if (change.runId === runId) heard += 1;
        else expect(change).toEqual({ runId: another });
      }
    })();
    const listeners = () =>
      server.psql(`SELECT pid FROM pg_stat_activity WHERE query LIKE '%listen(%' AND pid <> pg_backend_pid()`);
    const isHeard = async (change: () => Promise<unknown>) => {
      await pause(0.05);
      const before = heard;
      await change();
      await until(() => heard > before);
    };
    // Once it listens it is told of each run, since what changed meanwhile went unheard.
    await until(async () => (await listeners()).length === 1 && heard === 1);
    const lease = await granted(store, ask(runId));
    await until(() => heard === 2);
    await isHeard(() => store.release(lease));
    await isHeard(() => granted(store, ask(runId)));
    await isHeard(() => store.revoke(runId, { by: 'ops', reason: 'test' }));
    await granted(store, ask(freshRun()));

    const [first] = await listeners();
    await server.psql(`SELECT pg_terminate_backend(${String(first!['pid'])})`);
    await until(async () => (await listeners()).some(({ pid }) => pid !== first!['pid']));
    await isHeard(() => granted(store, ask(runId)));
    controller.abort();
    await listening;
    await until(async () => (await listeners()).length === 0);
    await waiter.close();
  });

  it('nothing is notified while nobody listens, since PostgreSQL lets notifying commits through one at a time', async () => {
    const client = new pg.Client(server.url);
    await client.connect();
    const heard: unknown[] = [];
    client.on('notification', (notification) => heard.push(notification));
    await migratePostgres({ pool, schema: 'quiet' });
    const quiet = await PostgresStore.open({ pool, schema: 'quiet' });
    await client.query('LISTEN "lessor:quiet"');
    await quiet.release(await granted(quiet, ask(freshRun())));
    await client.query('SELECT quiet.listen(60)');
    const runId = freshRun();
    await granted(quiet, ask(runId));
    await until(() => heard.length > 0);
    expect(heard).toMatchObject([{ payload: runId }]);
    await client.end();
    await quiet.close();
  });

  it('closing ends whoever waits for changes, and leaves no connection', async () => {
    const waiter = await PostgresStore.open({ url: `${server.url}?application_name=waiting` });
    const ended = (async () => {
      for await (const _ of waiter.changes([freshRun()], { signal: new AbortController().signal })) continue;
    })();
    await pause(0.05);
    await waiter.close();
    await ended;
    await until(
      async () => (await server.psql(`SELECT FROM pg_stat_activity WHERE application_name = 'waiting'`)).length === 0,
    );
  });

  // Where it cannot be had: a line says so on a laptop, and CI fails.
  it.skipIf(foundPgbouncer === null)(
    'behind a transaction pooler nothing is heard, the wait ends with its signal, and calls go on',
    async () => {
      const pooler = await startPgbouncer(server, 'postgres', { connections: 3 });
      const behind = await PostgresStore.open({ url: pooler.url });
      const controller = new AbortController();
      const waits = Array.from({ length: 4 }, async () => {
        for await (const _ of behind.changes([freshRun()], { signal: controller.signal })) continue;
      });
      for (let call = 0; call < 20; call += 1) await granted(behind, ask(freshRun()));
      controller.abort();
      await Promise.all(waits);
      await behind.close();
      await pooler.close();
    },
  );
});
