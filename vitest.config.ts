import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    environment: 'node',
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/global-setup.ts'],
    setupFiles: ['test/leaks.ts'],
    // Named again where a command line names others: `scripts/check.mjs`, `.ci/run`.
    reporters: ['default', './test/store-reporter.ts'],
    pool: 'forks',
    // Much of the time is waiting, for expiries and for servers, so that two go side by side on two cores as well.
    maxWorkers: 2,
    // Real servers and processes on a machine that others use too: a test polls for what it awaits, so these only end a hang.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    teardownTimeout: 30_000,
  },
});
