/**
 * All that can be true of two moments at once: the latest reading of the server's clock by a call that held the run, and the
 * expiry of its newest lease. Bounds on both and on their difference, which is exact for conditions of this kind.
 */
export interface Zone {
  readonly nowLeast: number;
  readonly nowMost: number;
  readonly expiryLeast: number;
  readonly expiryMost: number;
  /** Bounds on expiry - now: what is left of the lease. */
  readonly leftLeast: number;
  readonly leftMost: number;
}

/** At a moment, in milliseconds, with no lease whose expiry mattered. */
export function zoneFrom(start: number): Zone {
  return withoutExpiry({ ...ANY, nowLeast: start });
}

/** A later look at the clock, between the two moments. Null when that cannot be. */
export function later(zone: Zone, least: number, most: number): Zone | null {
  const { nowLeast, expiryLeast, expiryMost, leftMost } = zone;
  return close({
    nowLeast: Math.max(nowLeast, least),
    nowMost: most,
    expiryLeast,
    expiryMost,
    leftLeast: -Infinity,
    leftMost,
  });
}

/** The part of the zone within these bounds, or null when there is none. */
export function within(zone: Zone, bounds: Partial<Zone>): Zone | null {
  return close({
    nowLeast: Math.max(zone.nowLeast, bounds.nowLeast ?? -Infinity),
    nowMost: Math.min(zone.nowMost, bounds.nowMost ?? Infinity),
    expiryLeast: Math.max(zone.expiryLeast, bounds.expiryLeast ?? -Infinity),
    expiryMost: Math.min(zone.expiryMost, bounds.expiryMost ?? Infinity),
    leftLeast: Math.max(zone.leftLeast, bounds.leftLeast ?? -Infinity),
    leftMost: Math.min(zone.leftMost, bounds.leftMost ?? Infinity),
  });
}

/** The lease expires so long after now, whatever it did before. */
export function expiringAfter({ nowLeast, nowMost }: Zone, ttl: number): Zone {
  return {
    nowLeast,
    nowMost,
    expiryLeast: nowLeast + ttl,
    expiryMost: nowMost + ttl,
    leftLeast: ttl,
    leftMost: ttl,
  };
}

/** The expiry of a lease that has ended matters no more. */
export function withoutExpiry({ nowLeast, nowMost }: Zone): Zone {
  return { ...ANY, nowLeast, nowMost };
}

/** Whether all that can be true of the other can be true of this one. */
export function covers(zone: Zone, other: Zone): boolean {
  return (
    zone.nowLeast <= other.nowLeast &&
    zone.nowMost >= other.nowMost &&
    zone.expiryLeast <= other.expiryLeast &&
    zone.expiryMost >= other.expiryMost &&
    zone.leftLeast <= other.leftLeast &&
    zone.leftMost >= other.leftMost
  );
}

/** What sums of milliseconds may be off by, and less than any two moments that are told apart. */
const ROUNDING = 1e-8;

const ANY: Zone = {
  nowLeast: -Infinity,
  nowMost: Infinity,
  expiryLeast: -Infinity,
  expiryMost: Infinity,
  leftLeast: -Infinity,
  leftMost: Infinity,
};

/** Draws what follows from the bounds together. Twice, since one bound may tighten another that was looked at before it. */
function close(zone: Zone): Zone | null {
  let { nowLeast, nowMost, expiryLeast, expiryMost, leftLeast, leftMost } = zone;
  for (let round = 0; round < 2; round += 1) {
    expiryLeast = Math.max(expiryLeast, nowLeast + leftLeast);
    expiryMost = Math.min(expiryMost, nowMost + leftMost);
    nowLeast = Math.max(nowLeast, expiryLeast - leftMost);
    nowMost = Math.min(nowMost, expiryMost - leftLeast);
    leftLeast = Math.max(leftLeast, expiryLeast - nowMost);
    leftMost = Math.min(leftMost, expiryMost - nowLeast);
  }
  const isEmpty =
    nowLeast > nowMost + ROUNDING || expiryLeast > expiryMost + ROUNDING || leftLeast > leftMost + ROUNDING;
  return isEmpty ? null : { nowLeast, nowMost, expiryLeast, expiryMost, leftLeast, leftMost };
}
