/** Every step that the lease machine can take within small bounds, found by `@xstate/graph` over the machine itself. */
import { adjacencyMapToArray, getAdjacencyMap } from '@xstate/graph';
import type { LeaseContext, LeaseEvent } from '../../machines/lease.machine.ts';
import { leaseGuards, leaseMachine, leaseUpdates } from '../../machines/lease.machine.ts';
import { leaseIdOf } from '../../machines/lease.rules.ts';
import type { LeaseState } from '../../machines/lease.table.ts';

const RUN = 'run';
const TTL_SECONDS = 2;
/** In any order: the machine must not depend on a time that only grows. */
const TIMES = [0, 1, 2, 3];
const TOKENS = [1, 2];
const WORKERS = ['worker-a', 'worker-b'];
const ACQUISITIONS = [undefined, 'x', 'y'];

interface Snapshot {
  readonly value: LeaseState;
  readonly context: LeaseContext;
}

export interface WalkedStep {
  readonly snapshot: Snapshot;
  readonly event: LeaseEvent;
  readonly after: Snapshot;
}

export const EVENTS: readonly LeaseEvent[] = [
  ...WORKERS.flatMap((workerId) =>
    TOKENS.flatMap((fencingToken) =>
      ACQUISITIONS.flatMap((acquisitionId) =>
        TIMES.flatMap((now) =>
          (['extend', 'refuse', undefined] as const).map((reacquire) => ({
            ...({ type: 'acquire', workerId, fencingToken, acquisitionId } as const),
            ...{ now, reacquire, ttlSeconds: TTL_SECONDS },
          })),
        ),
      ),
    ),
  ),
  ...claims().flatMap((claim) =>
    TIMES.map((now) => ({ type: 'heartbeat', ...claim, now, ttlSeconds: TTL_SECONDS }) as const),
  ),
  ...claims().map((claim) => ({ type: 'release', ...claim }) as const),
  ...TIMES.map((now) => ({ type: 'expire', now }) as const),
];

function claims() {
  return WORKERS.flatMap((workerId) =>
    TOKENS.flatMap((fencingToken) =>
      ACQUISITIONS.map((acquisitionId) => ({
        leaseId: leaseIdOf(RUN, workerId, fencingToken),
        fencingToken,
        acquisitionId,
      })),
    ),
  );
}

let steps: readonly WalkedStep[] | undefined;

export function everyStep(): readonly WalkedStep[] {
  return (steps ??= walk());
}

function walk(): readonly WalkedStep[] {
  const map = getAdjacencyMap(leaseMachine, {
    input: { runId: RUN },
    events: EVENTS,
    serializeState: ({ value, context }) => JSON.stringify([value, context]),
    limit: 1_000_000,
  });
  return adjacencyMapToArray(map).map(({ state, event, nextState }) => ({ snapshot: state, event, after: nextState }));
}

/** The machine, with a record of what its guards answered and which actions ran. */
export function walkedMachine(): { readonly machine: typeof leaseMachine; readonly answers: Set<string> } {
  const answers = new Set<string>();
  const guards = Object.fromEntries(
    Object.entries(leaseGuards).map(([name, guard]) => [
      name,
      ({ context, event }: { context: LeaseContext; event: LeaseEvent }) => {
        const answer = guard(context, event);
        answers.add(`${name} ${answer}`);
        return answer;
      },
    ]),
  );
  const actions = Object.fromEntries(Object.keys(leaseUpdates).map((name) => [name, () => void answers.add(name)]));
  return { machine: leaseMachine.provide({ guards, actions }), answers };
}
