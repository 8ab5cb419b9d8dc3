/** The door of the command: what was typed, checked once, or a `UsageError` that says what was expected. */
import type { RunState } from '../lease.ts';
import { checkOneOf } from '../options.ts';
import type { FenceTableInvocation } from './fence-table.ts';
import { parseFenceTable } from './fence-table.ts';
import type { Topic } from './help.ts';
import { topics } from './help.ts';
import type { MigrateInvocation } from './migrate.ts';
import { parseMigrate } from './migrate.ts';
import { UsageError, checked, onlyRun, parse, toName, toSeconds } from './usage.ts';

export interface RunInvocation {
  readonly name: 'run';
  readonly runId: string;
  readonly command: readonly [string, ...string[]];
  readonly store: string | undefined;
  readonly ttlSeconds: number;
  readonly waitSeconds: number;
  /** Undefined: drawn for this process alone. */
  readonly workerId: string | undefined;
  readonly graceSeconds: number | undefined;
}

export interface ListInvocation {
  readonly name: 'list';
  readonly store: string | undefined;
  readonly json: boolean;
  readonly state: RunState | undefined;
  readonly workerId: string | undefined;
  readonly prefix: string | undefined;
}

export interface ShowInvocation {
  readonly name: 'show';
  readonly runId: string;
  readonly store: string | undefined;
  readonly json: boolean;
}

export interface ReleaseInvocation {
  readonly name: 'release';
  readonly runId: string;
  readonly store: string | undefined;
  readonly json: boolean;
  readonly reason: string;
  readonly by: string | undefined;
}

export interface WatchInvocation {
  readonly name: 'watch';
  /** At least one, none twice. */
  readonly runIds: readonly string[];
  readonly store: string | undefined;
  readonly json: boolean;
}

export interface ScenariosInvocation {
  readonly name: 'scenarios';
  readonly format: 'json' | 'markdown' | 'schema';
}

export type Invocation =
  | RunInvocation
  | ListInvocation
  | ShowInvocation
  | ReleaseInvocation
  | WatchInvocation
  | ScenariosInvocation
  | MigrateInvocation
  | FenceTableInvocation
  | { readonly name: 'help'; readonly topic: Topic }
  | { readonly name: 'version' };

const MIN_TTL_SECONDS = 1;
const MAX_TTL_SECONDS = 86_400;

/** Reads the arguments after `lessor`. */
export function parseInvocation(args: readonly string[]): Invocation {
  const [name, ...rest] = args;
  if (name === undefined) throw new UsageError('lessor', 'Expected a command');
  if (name === '--version' || name === '-V') return { name: 'version' };
  if (name === '--help' || name === '-h') return { name: 'help', topic: 'lessor' };
  if (name === 'help') return { name: 'help', topic: toTopic(rest[0] ?? 'lessor') };
  const topic = toTopic(name);
  const own = rest.includes('--') ? rest.slice(0, rest.indexOf('--')) : rest;
  if (own.includes('--help') || own.includes('-h')) return { name: 'help', topic };
  switch (topic) {
    case 'run':
      return parseRun(own, rest.slice(own.length));
    case 'list':
      return parseList(rest);
    case 'show':
      return parseShow(rest);
    case 'release':
      return parseRelease(rest);
    case 'watch':
      return parseWatch(rest);
    case 'scenarios':
      return parseScenarios(rest);
    case 'migrate':
      return parseMigrate(rest);
    case 'fence-table':
      return parseFenceTable(rest);
    case 'lessor':
      throw new UsageError('lessor', 'Expected a command, got "lessor"');
  }
}

function toTopic(name: string): Topic {
  const topic = topics.find((known) => known === name);
  if (topic === undefined) {
    throw new UsageError(
      'lessor',
      `Expected a command (run, list, show, release, watch, scenarios, migrate or fence-table), got ${JSON.stringify(name)}`,
    );
  }
  return topic;
}

function parseRun(own: readonly string[], tail: readonly string[]): RunInvocation {
  const { values, positionals } = parse('run', own, {
    store: { type: 'string' },
    ttl: { type: 'string' },
    wait: { type: 'string' },
    try: { type: 'boolean' },
    worker: { type: 'string' },
    grace: { type: 'string' },
  });
  const [command, ...commandArgs] = tail.slice(1);
  if (positionals.length > 1 && command === undefined) {
    throw new UsageError('run', 'Expected -- between RUN and the command, as in: lessor run RUN -- COMMAND');
  }
  const runId = onlyRun('run', positionals);
  if (command === undefined || command === '') throw new UsageError('run', 'Expected a command after --');
  if (values.try && values.wait !== undefined) throw new UsageError('run', 'Expected --wait or --try, got both');
  const ttlSeconds = toSeconds('--ttl', values.ttl) ?? 30;
  if (ttlSeconds < MIN_TTL_SECONDS || ttlSeconds > MAX_TTL_SECONDS) {
    throw new UsageError(
      'run',
      `Expected --ttl to be ${MIN_TTL_SECONDS} to ${MAX_TTL_SECONDS} seconds, got ${ttlSeconds}`,
    );
  }
  const graceSeconds = toSeconds('--grace', values.grace);
  if (graceSeconds !== undefined && graceSeconds > ttlSeconds / 2) {
    throw new UsageError(
      'run',
      `Expected --grace to be at most half of --ttl (${ttlSeconds / 2}), got ${graceSeconds}`,
    );
  }
  return {
    name: 'run',
    runId,
    command: [command, ...commandArgs],
    store: values.store,
    ttlSeconds,
    waitSeconds: values.try ? 0 : (toSeconds('--wait', values.wait) ?? Infinity),
    workerId: values.worker === undefined ? undefined : toName('run', '--worker', values.worker),
    graceSeconds,
  };
}

function parseList(args: readonly string[]): ListInvocation {
  const { values, positionals } = parse('list', args, {
    store: { type: 'string' },
    json: { type: 'boolean' },
    state: { type: 'string' },
    worker: { type: 'string' },
    prefix: { type: 'string' },
  });
  if (positionals.length > 0) {
    throw new UsageError('list', `Expected no argument, got ${JSON.stringify(positionals[0])}. Did you mean --prefix?`);
  }
  return {
    name: 'list',
    store: values.store,
    json: values.json ?? false,
    state: values.state === undefined ? undefined : toState(values.state),
    workerId: values.worker === undefined ? undefined : toName('list', '--worker', values.worker),
    prefix: values.prefix ? toName('list', '--prefix', values.prefix) : undefined,
  };
}

function parseShow(args: readonly string[]): ShowInvocation {
  const { values, positionals } = parse('show', args, { store: { type: 'string' }, json: { type: 'boolean' } });
  return { name: 'show', runId: onlyRun('show', positionals), store: values.store, json: values.json ?? false };
}

function parseRelease(args: readonly string[]): ReleaseInvocation {
  const { values, positionals } = parse('release', args, {
    store: { type: 'string' },
    json: { type: 'boolean' },
    force: { type: 'boolean' },
    reason: { type: 'string' },
    by: { type: 'string' },
  });
  const runId = onlyRun('release', positionals);
  if (!values.force) {
    throw new UsageError(
      'release',
      'Expected --force: this takes the run away from a worker that may be at work on it',
    );
  }
  if (!values.reason) throw new UsageError('release', 'Expected --reason TEXT: it is kept in the record of the run');
  return {
    name: 'release',
    runId,
    store: values.store,
    json: values.json ?? false,
    reason: toName('release', '--reason', values.reason),
    by: values.by === undefined ? undefined : toName('release', '--by', values.by),
  };
}

function parseWatch(args: readonly string[]): WatchInvocation {
  const { values, positionals } = parse('watch', args, { store: { type: 'string' }, json: { type: 'boolean' } });
  if (positionals.length === 0) throw new UsageError('watch', 'Expected RUN, the name of at least one run');
  const runIds = [...new Set(positionals)].map((runId) => toName('watch', 'RUN', runId));
  return { name: 'watch', runIds, store: values.store, json: values.json ?? false };
}

function parseScenarios(args: readonly string[]): ScenariosInvocation {
  const { values, positionals } = parse('scenarios', args, { format: { type: 'string' } });
  if (positionals.length > 0) {
    throw new UsageError('scenarios', `Expected no argument, got ${JSON.stringify(positionals[0])}`);
  }
  const format = values.format ?? 'json';
  return checked('scenarios', () => {
    checkOneOf('--format', format, ['json', 'markdown', 'schema']);
    return { name: 'scenarios', format };
  });
}

function toState(value: string): RunState {
  return checked('list', () => {
    checkOneOf('--state', value, ['free', 'held', 'expired']);
    return value;
  });
}
