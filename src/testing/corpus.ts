/** The scenarios as a document: for implementations in other languages, and for people. */
import type { ClaimStep, Scenario, Step } from './scenario.ts';
import { scenarios } from './scenarios.ts';

/** Every scenario, and how to read them. */
export interface Corpus {
  /** Goes up when the form changes, not when scenarios do. */
  readonly version: 1;
  /** How to read it, one sentence each. */
  readonly about: readonly string[];
  /** For an implementation in memory whose leases have an id and a token. */
  readonly registry: readonly Scenario[];
  /** For an implementation whose leases carry an acquisition id as well. */
  readonly store: readonly Scenario[];
}

const ABOUT = [
  'A lease gives one run to one worker for a ttl. Play each scenario on a run of its own that was never leased, and compare every answer.',
  'Two workers, worker-a and worker-b, call acquire, heartbeat (renew), release and expire. Between the calls time advances by parts of the ttl; nothing else takes time.',
  'acquire is granted when the run is free or its lease has expired: a new lease with a new token, above every earlier token of the run. Else the run is held.',
  'A live lease is extended, its token kept, when its own worker acquires with reacquire "extend", or repeats the acquire that made it, with the same acquisition id. Otherwise nothing changes.',
  'Expiry is inclusive: a lease acquired at t is live before t + ttl, and expired at t + ttl.',
  'heartbeat is accepted when the claim is that of the live lease; the lease then lives for a ttl from now. It never revives an expired lease.',
  'release is accepted when the claim is that of the current lease, live or expired; the run is free from then on.',
  'A claim is that of a lease when the worker, the token and, where there is one, the acquisition id are all the same. "never-issued" claims with a token above every one of the run, "another-worker" in the other worker\'s name.',
  'Leases have names, lease-1, lease-2, so that later steps can claim them. A token is "new" or the "same" as that of the current lease; numbers are yours to choose.',
  'After each step look at the run: its state by the time (free, held, expired), its current lease, the lease with the newest token (the fence), and how many ttls are left. While it is held its current lease is valid; no other lease ever is.',
  'rule names the transition of the statechart that the last step takes, R1 to R9, or is null where nothing changes.',
];

/** Every scenario, as plain JSON. `corpusSchema` describes its form. */
export function corpus(): Corpus {
  return { version: 1, about: ABOUT, registry: scenarios('registry'), store: scenarios('store') };
}

/** The same for people: one scenario a section, one step a line. */
export function corpusMarkdown(): string {
  const { about, registry, store } = corpus();
  return [
    '# Scenarios of a lease',
    about.map((sentence) => `- ${sentence}`).join('\n'),
    `## Leases of a registry: ${registry.length} scenarios`,
    ...registry.map(scenarioMarkdown),
    `## Leases of a store: ${store.length} scenarios`,
    ...store.map(scenarioMarkdown),
  ]
    .join('\n\n')
    .concat('\n');
}

function scenarioMarkdown({ id, title, rule, steps }: Scenario): string {
  const lines = steps.map((step, index) => `${index + 1}. ${stepText(step)}; then ${afterText(step)}`);
  return [`### ${id}: ${title}${rule ? ` (${rule})` : ''}`, lines.join('\n')].join('\n\n');
}

function stepText(step: Step): string {
  switch (step.call) {
    case 'acquire': {
      const { worker, acquisition, reacquire, expect } = step;
      const how = [acquisition, `reacquire ${reacquire}`].filter((part) => part !== undefined).join(', ');
      const answer = expect.answer === 'held' ? `held by ${expect.by}` : `${expect.lease} with ${expect.token} token`;
      return `${worker} acquires (${how}): ${answer}`;
    }
    case 'heartbeat':
    case 'release':
      return `${step.call} with ${claimText(step.claim)}: ${step.expect.accepted ? 'accepted' : 'refused'}`;
    case 'expire':
      return 'the run is told the time';
    case 'advance':
      return `${step.ttls} ttl passes`;
  }
}

function claimText({ lease, change }: ClaimStep['claim']): string {
  const claimed = lease ?? 'no lease';
  if (change === 'none') return claimed;
  return change === 'never-issued' ? `${claimed}, with a token never issued` : `${claimed}, in the other worker's name`;
}

function afterText({ after }: Step): string {
  return after.state === 'free' ? 'free' : `${after.state} by ${after.lease}, ${after.ttlsLeft} ttl left`;
}
