import { describe, expect, it } from 'vitest';
import { full } from './bounds.ts';
import type { ProtocolBounds, ProtocolDesign } from './protocol-design.ts';
import { SHIPPED } from './protocol-design.ts';
import { protocolModel } from './protocol-model.ts';
import type { Searched } from './search.ts';
import { search } from './search.ts';

const BOUNDS: ProtocolBounds = { workers: 2, ticks: 3, grants: 2, holds: 2, messages: 2 };
/** Two holds of one worker, and one of the other. */
const THREE_HOLDS: ProtocolBounds = { ...BOUNDS, ticks: 1, holds: 3 };
const EXTENDING: Partial<ProtocolDesign> = { reacquire: 'extend' };

describe('V2 the protocol, searched exhaustively', () => {
  it('C1-C5 and C16 no two workers believe, and no stale write lands', () => {
    const result = search(protocolModel(SHIPPED, full ? { ...BOUNDS, ticks: 4 } : BOUNDS));
    tell('protocol', result);
    expect(result.violation).toBeNull();
    if (!full) expect([result.states, result.edges, result.depth]).toEqual([637_045, 3_509_934, 24]);
  }, 3_600_000);

  it('C16 no two workers believe where one of them holds twice', () => {
    const result = search(protocolModel(SHIPPED, full ? { ...THREE_HOLDS, ticks: 2, grants: 3 } : THREE_HOLDS));
    tell('protocol, three holds', result);
    expect(result.violation).toBeNull();
  }, 3_600_000);

  /** The fence says no to whom the store has passed over, also where a worker believes wrongly. */
  it('B17 no stale write lands where a worker extends its own lease, and where two processes have one worker id', () => {
    const bounds = { ...BOUNDS, ticks: full ? 2 : 1 };
    const extending = search(protocolModel({ ...SHIPPED, ...EXTENDING }, { ...THREE_HOLDS, ticks: 0 }, true));
    tell('protocol, extending', extending);
    expect(extending.violation).toBeNull();
    const shared = search(protocolModel({ ...SHIPPED, ...EXTENDING, oneWorkerId: true }, bounds, true));
    tell('protocol, one worker id', shared);
    expect(shared.violation).toBeNull();
  }, 3_600_000);

  /**
   * Worker 0 gives up an ask, holds again, and then the old ask arrives: it extends the worker's own lease under the old
   * acquisition, and is given back. The fence refuses the writes of the hold that goes on; what it believes is wrong until
   * its next renewal.
   */
  it('C16 a late ask of the same worker ends its newer hold where its own lease is extended: two believers', () => {
    const result = search(protocolModel({ ...SHIPPED, ...EXTENDING }, THREE_HOLDS));
    tell('protocol, extending', result);
    expect(result.violation?.what).toBe('two believers');
    expect(result.violation?.trace.length).toBe(12);
  });

  const noIds: Partial<ProtocolDesign> = { ...EXTENDING, acquisitionIds: false };
  const onTime = { ...BOUNDS, ticks: 2 };
  const broken: [what: string, Partial<ProtocolDesign>, ProtocolBounds, violation: string, steps: number][] = [
    ['no fence', { fenced: false }, onTime, 'a stale write', 12],
    ['a deadline counted from the reply', { countsFrom: 'reply' }, onTime, 'two believers', 8],
    ['a margin of 0', { margin: 0 }, onTime, 'two believers', 8],
    ['an expiry one tick early', { expiresEarly: 1 }, onTime, 'two believers', 7],
    ['a token kept by the same worker, without acquisition ids', noIds, THREE_HOLDS, 'two believers', 11],
    [
      'the same, waiting out the old deadline after a release',
      { ...noIds, waitsOutDeadline: true },
      THREE_HOLDS,
      'two believers',
      11,
    ],
    ['a reply that is not matched to its request', { matchesReplies: false }, onTime, 'two believers', 10],
    ['one worker id, without acquisition ids', { ...noIds, oneWorkerId: true }, onTime, 'two believers', 6],
    ['one worker id, with them (documented)', { ...EXTENDING, oneWorkerId: true }, onTime, 'two believers', 6],
  ];

  it.each(broken)('must fail: %s', (what, change, bounds, violation, steps) => {
    const result = search(protocolModel({ ...SHIPPED, ...change }, bounds));
    tell(`protocol, must fail: ${what}`, result);
    expect(result.violation?.what).toBe(violation);
    expect(result.violation?.trace.length, result.violation?.trace.join('; ')).toBe(steps);
  });
});

function tell(what: string, { states, edges, depth, violation }: Searched): void {
  const found = violation ? `: ${violation.what} in ${violation.trace.length} steps` : '';
  console.log(`${what}: ${states} states, ${edges} edges, depth ${depth}${found}`);
}
