/** What was typed and makes no sense: how it is found out and told. */
import { parseArgs } from 'node:util';
import type { ParseArgsConfig } from 'node:util';
import { checkName } from '../options.ts';
import type { Topic } from './help.ts';

/** What was typed makes no sense. Nothing has happened. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  /** The command whose help may help. */
  readonly topic: Topic;

  constructor(topic: Topic, message: string) {
    super(message);
    this.topic = topic;
  }
}

/** Options and positional arguments, by Node's own parser. */
export function parse<const Options extends NonNullable<ParseArgsConfig['options']>>(
  topic: Topic,
  args: readonly string[],
  options: Options,
): ReturnType<typeof parseArgs<{ args: string[]; options: Options; allowPositionals: true; strict: true }>> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    // Node goes on about positional arguments after the first sentence.
    throw new UsageError(topic, (error as Error).message.split(/\.? *\n|\. /)[0] ?? '');
  }
}

/** The one positional argument of most commands. */
export function onlyRun(topic: Topic, positionals: readonly string[]): string {
  const [runId, extra] = positionals;
  if (runId === undefined) throw new UsageError(topic, 'Expected RUN, the name of the run');
  if (extra !== undefined) throw new UsageError(topic, `Expected one RUN, got also ${JSON.stringify(extra)}`);
  return toName(topic, 'RUN', runId);
}

/** A name as a store takes it. */
export function toName(topic: Topic, argument: string, value: string): string {
  return checked(topic, () => {
    checkName(argument, value);
    return value;
  });
}

/** A refusal of the library, told as one of the command. */
export function checked<Value>(topic: Topic, check: () => Value): Value {
  try {
    return check();
  } catch (error) {
    throw new UsageError(topic, (error as Error).message.replaceAll('`', ''));
  }
}

/** Decimal seconds. Undefined when not given. */
export function toSeconds(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^(\d+\.?\d*|\.\d+)$/.test(text)) {
    throw new UsageError(
      'run',
      `Expected ${option} to be a number of seconds such as 30 or 0.5, got ${JSON.stringify(text)}`,
    );
  }
  return Number(text);
}
