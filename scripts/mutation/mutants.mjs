import { databaseMutants } from './mutants-databases.mjs';
import { fenceMutants } from './mutants-fence.mjs';
import { managerMutants } from './mutants-manager.mjs';
import { registryMutants } from './mutants-registry.mjs';
import { scheduleMutants } from './mutants-schedules.mjs';
import { storeMutants } from './mutants-stores.mjs';

/** Every property turned round once and more. A mutant that no test could tell from the original has no place here. */
export const mutants = [
  ...registryMutants,
  ...storeMutants,
  ...databaseMutants,
  ...fenceMutants,
  ...scheduleMutants,
  ...managerMutants,
];
