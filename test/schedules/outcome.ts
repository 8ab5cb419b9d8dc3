/** What comes out of a hold, and whether it is what must. */
import { LeaseLostError } from '../../src/errors.ts';
import type { Schedule } from './schedule.ts';
import type { HoldWitness } from './witness.ts';

export const RESULT = 42;
export const WORK_ERROR = new Error('of the work');
export const ABORTED = new Error('of the caller');

export const OUTCOMES = [
  'result',
  'error of the work',
  'lost, with the result',
  'lost, with the error of the work',
  'lost, as the work found',
  'aborted by the caller',
  'closed while it waited',
  'closed before',
  'held by another',
  'unavailable',
  'unknown',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

type Settled = { readonly value?: unknown; readonly error?: unknown };

/** The outcome by its own kind, and what contradicts the story. */
export function outcomeOf(
  settled: Settled | null,
  { work }: Schedule,
  { lost, phase }: HoldWitness,
): { readonly outcome: Outcome | 'pending'; readonly violations: string[] } {
  if (settled === null) return { outcome: 'pending', violations: ['C17: the hold does not settle'] };
  const outcome = kindOf(settled);
  const wanted = phase !== 'worked' ? WITHOUT_WORK : [afterWork(work, lost)];
  const isRight = outcome !== null && wanted.includes(outcome);
  const violations = isRight
    ? []
    : [`C9: the hold ends as ${outcome ?? String(settled.error)}, not as ${wanted.join(' or ')}`];
  return { outcome: outcome ?? 'pending', violations };
}

const WITHOUT_WORK: readonly Outcome[] = [
  'aborted by the caller',
  'closed while it waited',
  'closed before',
  'held by another',
  'unavailable',
  'unknown',
];

function afterWork(work: Schedule['work'], lost: boolean): Outcome {
  if (!lost) return work === 'throws' ? 'error of the work' : 'result';
  if (work === 'checks') return 'lost, as the work found';
  return work === 'throws' ? 'lost, with the error of the work' : 'lost, with the result';
}

function kindOf({ value, error }: Settled): Outcome | null {
  if (value === RESULT) return 'result';
  if (error === WORK_ERROR) return 'error of the work';
  if (error === ABORTED) return 'aborted by the caller';
  if (error instanceof LeaseLostError) {
    if (error.result === RESULT) return 'lost, with the result';
    if (error.workError === WORK_ERROR) return 'lost, with the error of the work';
    return error.workError === undefined && error.result === undefined ? 'lost, as the work found' : null;
  }
  if (error instanceof DOMException && error.name === 'AbortError') return 'closed while it waited';
  if (error instanceof TypeError && /was closed/.test(error.message)) return 'closed before';
  const { code } = error as { readonly code?: string };
  if (code === 'LEASE_NOT_AVAILABLE') return 'held by another';
  if (code === 'STORE_UNAVAILABLE') return 'unavailable';
  return code === 'OUTCOME_UNKNOWN' ? 'unknown' : null;
}
