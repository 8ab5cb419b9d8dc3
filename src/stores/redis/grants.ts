/** Acquires and releases, alone or many in one script, and what they answer. */
import { tokensUsedUp } from '../requests.ts';
import type { AcquireRequest, AcquireResult, ReleaseRequest } from '../store.ts';
import { Turns } from '../turns.ts';
import { grantedOf, heldOf, toMicroseconds } from './answers.ts';
import type { Answer } from './answers.ts';
import type { RedisKeys } from './keys.ts';
import { bucketOf } from './keys.ts';
import type { MarkedCall, MarkedCalls } from './marked-calls.ts';
import type { Script } from './scripts.ts';
import { ACQUIRE, ACQUIRE_MANY, RELEASE, RELEASE_MANY } from './scripts.ts';

/** Few, so that the server works on some while this process is at the answers to others. */
const MOST = 16;

export function acquireTurns(
  calls: MarkedCalls,
  keys: RedisKeys,
  isCluster: boolean,
): Turns<AcquireRequest, AcquireResult> {
  const callOf = ({ runId, workerId, acquisitionId, ttlSeconds, reacquire = 'extend' }: AcquireRequest): MarkedCall => {
    const bucket = bucketOf(runId);
    const args = [workerId, acquisitionId, toMicroseconds(ttlSeconds), reacquire];
    return { bucket, keys: [keys.lease(runId), keys.runs(bucket)], args };
  };
  return new Turns({
    ...together(calls, ACQUIRE_MANY, isCluster, callOf, resultOf),
    one: async (request, options) => {
      const answer = await calls.ask(ACQUIRE, request.runId, callOf(request), options);
      const result = resultOf(request, answer);
      if (result === undefined) throw tokensUsedUp(Number(answer[1]));
      return result;
    },
  });
}

export function releaseTurns(calls: MarkedCalls, keys: RedisKeys, isCluster: boolean): Turns<ReleaseRequest, boolean> {
  const callOf = ({ runId, workerId, acquisitionId, fencingToken }: ReleaseRequest): MarkedCall => ({
    bucket: bucketOf(runId),
    keys: [keys.lease(runId)],
    args: [workerId, acquisitionId, fencingToken === undefined ? '' : String(fencingToken)],
  });
  return new Turns({
    ...together(calls, RELEASE_MANY, isCluster, callOf, releasedOf),
    one: async (request, options) =>
      releasedOf(request, await calls.ask(RELEASE, request.runId, callOf(request), options)) === true,
  });
}

/** How many are asked at once. A cluster would refuse keys of several slots: there each goes by itself. */
function together<Request extends { readonly runId: string }, Result>(
  calls: MarkedCalls,
  script: Script,
  isCluster: boolean,
  callOf: (request: Request) => MarkedCall,
  read: (request: Request, answer: Answer) => Result | undefined,
): Pick<ConstructorParameters<typeof Turns<Request, Result>>[0], 'most' | 'many'> {
  const many = async (requests: readonly Request[]): Promise<(Result | undefined)[]> => {
    const answers = await calls.sendMany(script, requests.map(callOf));
    return requests.map((request, index) => read(request, answers[index] ?? []));
  };
  return { most: MOST, many: isCluster ? async () => [] : many };
}

/** Undefined when there is neither a lease nor a holder. */
function resultOf(request: AcquireRequest, answer: Answer): AcquireResult | undefined {
  const [status] = answer;
  if (status === 'held') return heldOf(answer);
  return status === 'granted' || status === 'extended' ? grantedOf(request, answer) : undefined;
}

function releasedOf(_request: ReleaseRequest, [status]: Answer): boolean | undefined {
  return status === 'released' ? true : status === 'kept' ? false : undefined;
}
