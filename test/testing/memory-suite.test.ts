import { describe, it } from 'vitest';
import { MemoryStore } from '../../src/stores/memory.ts';
import { testLeaseStore } from '../../src/testing/store-suite.ts';

let now = 1_000;

testLeaseStore(
  { describe, it },
  {
    name: 'the memory store',
    create: async () => new MemoryStore({ now: () => now }),
    ttlSeconds: 10,
    advance: async (seconds) => void (now += seconds),
  },
);

testLeaseStore(
  { describe, it },
  {
    name: "the memory store on the process's own clock",
    create: async () => new MemoryStore(),
    ttlSeconds: 0.3,
    advance: (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000 + 2)),
    timePasses: true,
  },
);
