import type { LeaseManagerOptions } from '../../src/manager/settings.ts';

export const TTL = 32;
export const REQUEST_SECONDS = 5;
/** A power of two, so that a clock can be moved to the deadline exactly. */
export const MARGIN = 0.25;

/** What the manager is told. */
export const SETTINGS: LeaseManagerOptions = {
  ttlSeconds: TTL,
  workerId: 'worker-a',
  renewSeconds: 8,
  requestTimeoutSeconds: REQUEST_SECONDS,
  releaseTimeoutSeconds: 10,
  drift: 0,
  granularitySeconds: MARGIN,
};
