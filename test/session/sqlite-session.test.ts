import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, it } from 'vitest';
import { openStore } from '../../src/index.ts';
import { sessionRules, severalRunsRules } from './session-rules.ts';

const folder = mkdtempSync(join(tmpdir(), 'lessor-session-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('sessions on SQLite', () => {
  it.each(Object.entries({ ...sessionRules, ...severalRunsRules }))('%s', async (_title, rule) => {
    await using store = await openStore(`sqlite:${join(folder, 'leases.db')}`);
    await rule({ store, ttlSeconds: 0.2, advance: (seconds) => sleep(seconds * 1000 + 5) });
  });
});
