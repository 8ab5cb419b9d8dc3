/** What decides and what is kept at each step of a keeper, as plain functions: the chart names them, and so does its table. */
import type { AskAnswer, KeeperContext, KeeperInput, KeeperNews, ReleaseAnswer, RenewAnswer } from './keeper.types.ts';

/** An event, or the end of an actor, whose answer is its output. */
export interface KeeperStep {
  readonly type: string;
  readonly output?: unknown;
}

type Change = Partial<KeeperContext>;

function ask(step: KeeperStep): AskAnswer {
  return step.output as AskAnswer;
}

function renewal(step: KeeperStep): RenewAnswer {
  return step.output as RenewAnswer;
}

/** The guards of the chart by name. */
export const keeperGuards = {
  isGranted: (_: KeeperContext, step: KeeperStep) => ask(step).status === 'granted',
  isHeld: (_: KeeperContext, step: KeeperStep) => ask(step).status === 'held',
  mayAskAgain: (_: KeeperContext, step: KeeperStep) => {
    const answer = ask(step);
    return answer.status !== 'granted' && !answer.waitOver;
  },
  mayBeGranted: ({ unanswered }: KeeperContext, step: KeeperStep) => {
    const answer = ask(step);
    return unanswered || (answer.status === 'failed' && answer.unknown);
  },
  isUnanswered: ({ unanswered }: KeeperContext) => unanswered,
  hasHolder: ({ holder }: KeeperContext) => holder !== null,
  renewsItself: ({ autoRenew }: KeeperContext) => autoRenew,
  isReleaseAsked: ({ releaseAsked }: KeeperContext) => releaseAsked,
  isRenewed: (_: KeeperContext, step: KeeperStep) => renewal(step).status === 'renewed',
  isFailed: (_: KeeperContext, step: KeeperStep) => renewal(step).status === 'failed',
};

/** What the chart keeps, by the name of the action: what changes in the context. */
export const keeperUpdates = {
  countAsk: ({ attempts }: KeeperContext): Change => ({ attempts: attempts + 1 }),
  keepLease: (_: KeeperContext, step: KeeperStep): Change => {
    const answer = ask(step);
    if (answer.status !== 'granted') return {};
    return { lease: answer.lease, deadline: answer.deadline, unanswered: false, holder: null, error: null };
  },
  keepRefusal: ({ unanswered }: KeeperContext, step: KeeperStep): Change => {
    const answer = ask(step);
    if (answer.status === 'held') return { holder: answer.holder, error: null };
    if (answer.status === 'granted') return {};
    return { holder: null, error: answer.error, unanswered: unanswered || answer.unknown };
  },
  countFromSending: (_: KeeperContext, step: KeeperStep): Change => {
    const answer = renewal(step);
    if (answer.status !== 'renewed') return {};
    return { deadline: answer.deadline, failures: 0, unanswered: false, error: null, company: null };
  },
  keepFailure: ({ failures, unanswered, company }: KeeperContext, step: KeeperStep): Change => {
    const answer = renewal(step);
    if (answer.status !== 'failed') return {};
    return {
      failures: failures + 1,
      error: answer.error,
      unanswered: unanswered || answer.unknown,
      company: answer.unknown ? Math.max(1, Math.floor(Math.sqrt(answer.shared))) : company,
    };
  },
  keepReason: (_: KeeperContext, step: KeeperStep): Change => {
    const answer = renewal(step);
    return { reason: answer.status === 'lost' ? answer.reason : 'expired' };
  },
  keepExpiry: (): Change => ({ reason: 'expired' }),
  askRelease: (): Change => ({ releaseAsked: true }),
  keepRelease: (_: KeeperContext, step: KeeperStep): Change => {
    const { freed, error = null } = step.output as ReleaseAnswer;
    return { freed, error };
  },
};

/** What the chart tells, by the name of the action. */
export const keeperNews = {
  tellGranted: 'granted',
  tellRenewed: 'renewed',
  tellUncertain: 'uncertain',
  tellLost: 'lost',
  tellReleased: 'released',
  tellRefused: 'refused',
  tellFailed: 'failed',
} as const satisfies Record<string, KeeperNews['type']>;

const IDLE: KeeperInput = {
  runId: '',
  workerId: '',
  acquisitionId: '',
  reacquire: undefined,
  times: {
    ttlSeconds: 30,
    renewSeconds: 10,
    requestTimeoutSeconds: 5,
    marginSeconds: 0.315,
    pollSeconds: 1,
    releaseTimeoutSeconds: 10,
  },
  autoRenew: true,
  waitUntilSeconds: null,
};

/** What a keeper starts with. */
export function keeperContext(input: KeeperInput = IDLE): KeeperContext {
  return {
    runId: input.runId,
    workerId: input.workerId,
    acquisitionId: input.acquisitionId,
    reacquire: input.reacquire,
    times: input.times,
    autoRenew: input.autoRenew,
    waitUntilSeconds: input.waitUntilSeconds,
    attempts: 0,
    unanswered: false,
    holder: null,
    lease: null,
    deadline: null,
    failures: 0,
    error: null,
    company: null,
    releaseAsked: false,
    freed: false,
    reason: null,
  };
}
