/** Run it: node --test examples/own-store */
import { describe, it } from 'node:test';
import { testLeaseStore } from 'lessor/testing';
import { MapStore } from './map-store.js';

let now = 0;

testLeaseStore(
  { describe, it },
  {
    name: 'a store on a Map',
    create: async () => new MapStore(() => now),
    ttlSeconds: 10,
    advance: async (seconds) => void (now += seconds),
  },
);
