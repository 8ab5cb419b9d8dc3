import assert from 'node:assert/strict';
import type { StoredLease } from '../../lease.ts';
import type { RuleFamily } from '../rule.ts';
import { granted, refused, renewal, stillLive } from '../rule.ts';

/** Names that somebody's escaping, matching, trimming or normalising would confuse. All of them are different names. */
export const TROUBLESOME_NAMES: readonly string[] = [
  ...['__proto__', 'constructor', 'toString', '../x', './x', '..', '/', '{tag}', '{tag}2', '{', '}', '{}', '*', '?'],
  ...[
    '%',
    '_',
    'a%',
    'a_',
    'ab',
    "'",
    '"',
    "''",
    '`',
    '\\',
    '\\\\',
    '$1',
    ':name',
    '-- ',
    ';',
    'a:b',
    'a:b:c',
    'a',
    ':',
  ],
  ...[
    'dev',
    'dev-server',
    'DEV',
    'Dev',
    ' dev',
    'dev ',
    'dev\n',
    '\tdev',
    'dev\r',
    '\u00e9',
    'e\u0301',
    '\u00df',
    'ss',
  ],
  ...[
    '\u0130',
    'i\u0307',
    '\ufb01',
    'fi',
    '\ufeff',
    '\u200b',
    '\u{1f512}',
    '\u{10ffff}',
    '\uffff',
    '0',
    '00',
    '1e3',
    'null',
  ],
  ...['x'.repeat(1024), 'x'.repeat(1023), '\u{1f512}'.repeat(256)],
];

/** Names that confuse only where they stand alone. */
const BARE_NAMES = new Set(['__proto__', 'constructor', 'toString', '0', '00', '1e3', 'null']);

export const nameRules: RuleFamily = {
  title: 'names',
  rules: {
    'NM3 different run names are different runs, and the same name is one': async (context) => {
      const { store } = context;
      const leases: StoredLease[] = [];
      // One after another: two names that were one run would show as a refusal, or as a token that was kept.
      for (const [index, name] of TROUBLESOME_NAMES.entries()) {
        const bare = BARE_NAMES.has(name) || Buffer.byteLength(name) > 900;
        const runId = bare ? name : `${context.runId}${name}`;
        // An earlier test of this store may have leased a name that stands alone.
        if (bare) await store.revoke(runId, { by: 'kit', reason: 'leased by an earlier test' });
        leases.push(
          await granted({ ...context, runId }, { workerId: `worker-${index}`, ttlSeconds: context.ttlSeconds * 1000 }),
        );
      }
      for (const lease of leases) {
        const run = { ...context, runId: lease.runId };
        assert.equal((await refused(run, { workerId: 'worker-b' })).workerId, lease.workerId);
        assert.equal((await store.read(lease.runId))?.runId, lease.runId);
        await stillLive(run, lease);
      }
      for (const lease of leases) assert.equal(await store.release(lease), true);
    },

    'NM3 different worker names are different workers, and the same name is one': async (context) => {
      for (const workerId of TROUBLESOME_NAMES) {
        const run = { ...context, runId: context.anotherRun() };
        const lease: StoredLease = await granted(run, { workerId, ttlSeconds: context.ttlSeconds * 1000 });
        assert.equal(lease.workerId, workerId);
        for (const other of [`${workerId.slice(0, 100)} `, ` ${workerId.slice(0, 100)}`, 'worker-b']) {
          if (other !== workerId) assert.equal((await refused(run, { workerId: other })).workerId, workerId);
        }
        assert.equal((await granted(run, { workerId })).fencingToken, lease.fencingToken);
      }
    },

    'B7 references are compared field by field, since joined names can be equal': async (context) => {
      const base = context.anotherRun();
      const one = await granted({ ...context, runId: `${base}:b` }, { workerId: 'c' });
      const other = await granted({ ...context, runId: base }, { workerId: 'b:c' });
      for (const [lease, foreign] of [
        [one, other],
        [other, one],
      ] as const) {
        const { runId, workerId } = foreign;
        await renewal(context, { ...lease, runId, workerId }, 'lost');
        assert.equal(await context.store.release({ ...lease, runId, workerId }), false);
      }
      await stillLive(context, one);
      await stillLive(context, other);
    },
  },
};
