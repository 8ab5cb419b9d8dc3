/** The SQLite store under the kit, with each driver: the rules of every store, races and generated scenarios included. */
import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it } from 'vitest';
import type { LeaseStore } from '../../src/stores/store.ts';
import { testLeaseStore } from '../../src/testing/store-suite.ts';
import { connect, type DriverName, drivers, newFile, openFile } from './sqlite/files.ts';

for (const { name, missing } of drivers) {
  if (missing === undefined) testDriver(name);
  else it.skip(`the SQLite store on ${name} (skipped: ${missing})`);
}

function testDriver(driver: DriverName): void {
  // One file for all rules, as in use: each rule has runs of its own.
  const shared = newFile();
  const open = (): Promise<LeaseStore> => openFile(driver, shared);
  testLeaseStore(
    { describe, it },
    {
      name: `the SQLite store on ${driver}`,
      create: open,
      ttlSeconds: 1,
      advance: (seconds) => sleep(seconds * 1000 + 1),
      timePasses: true,
      takeOverRounds: 200,
      reopen: open,
      unreachable: async () => {
        const file = newFile();
        const store = await openFile(driver, file);
        rmSync(file);
        return store;
      },
      plantToken: async (_store, runId, fencingToken) => {
        const database = connect(driver, shared);
        const plant = database.prepare(
          'INSERT INTO lessor_fence (run_id, fencing_token, acquisition_id) VALUES (?, ?, ?)',
        );
        plant.run(runId, fencingToken, 'planted');
        database.close();
      },
    },
  );
}
