#!/usr/bin/env node
/** The command `lessor`: reads its arguments, does one thing, and ends with a code of `exit-codes.ts`. */
import { readFileSync } from 'node:fs';
import { isLeaseError, StoreUnavailableError } from '../errors.ts';
import type { LeaseStore } from '../stores/store.ts';
import type { Invocation } from './arguments.ts';
import { parseInvocation } from './arguments.ts';
import { exitCodes } from './exit-codes.ts';
import { helpTexts } from './help.ts';
import { resolveStoreUrl } from './store-url.ts';
import { say } from './terminal.ts';
import { checked, UsageError } from './usage.ts';

async function main(args: readonly string[]): Promise<number> {
  try {
    return await perform(parseInvocation(args));
  } catch (error) {
    return explain(error);
  }
}

async function perform(invocation: Invocation): Promise<number> {
  switch (invocation.name) {
    case 'help':
      process.stdout.write(helpTexts[invocation.topic]);
      return exitCodes.ok;
    case 'version':
      process.stdout.write(`${readVersion()}\n`);
      return exitCodes.ok;
    case 'run': {
      const { run } = await import('./run.ts');
      return run(invocation, resolveStoreUrl(invocation.store), open);
    }
    case 'scenarios':
      return (await import('./scenarios.ts')).scenarios(invocation);
    case 'list':
    case 'show':
    case 'release':
    case 'watch': {
      await using store = await open(resolveStoreUrl(invocation.store));
      return await ask(store, invocation);
    }
    case 'migrate':
      return (await import('./migrate.ts')).migrate(invocation, resolveStoreUrl(invocation.store));
    case 'fence-table':
      return (await import('./fence-table.ts')).fenceTable(invocation, resolveStoreUrl(invocation.store));
    default:
      return invocation satisfies never;
  }
}

async function ask(
  store: LeaseStore,
  invocation: Extract<Invocation, { name: 'list' | 'show' | 'release' | 'watch' }>,
): Promise<number> {
  switch (invocation.name) {
    case 'list':
      return (await import('./list.ts')).list(store, invocation);
    case 'show':
      return (await import('./show.ts')).show(store, invocation);
    case 'release':
      return (await import('./release.ts')).release(store, invocation);
    case 'watch':
      return (await import('./watch.ts')).watch(store, invocation);
    default:
      return invocation satisfies never;
  }
}

/** Loaded only when there is a store to open, so that `--help` is there at once. */
async function open(url: string): Promise<LeaseStore> {
  const { openerOf, openStore } = await import('../stores/open-store.ts');
  checked('lessor', () => openerOf(url));
  try {
    return await openStore(url);
  } catch (error) {
    // The URL is fine, and the server is set up in a way that leases cannot live with.
    if (error instanceof TypeError || error instanceof RangeError) throw new StoreUnavailableError(error.message);
    throw error;
  }
}

function explain(error: unknown): number {
  if (error instanceof UsageError) {
    say(
      `${/[.?!]$/.test(error.message) ? error.message : `${error.message}.`}\nSee: lessor${error.topic === 'lessor' ? '' : ` ${error.topic}`} --help`,
    );
    return exitCodes.usage;
  }
  if (isLeaseError(error)) {
    say(error.message);
    const { cause } = error;
    if (cause instanceof Error && !error.message.includes(cause.message)) say(`because: ${cause.message}`);
    return error.code === 'LEASE_LOST' ? exitCodes.lost : exitCodes.storeUnavailable;
  }
  say(`this is a mistake in lessor: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  return exitCodes.internal;
}

function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Nobody reads what was to be written: `lessor list | head`.
  if (error.code === 'EPIPE') process.exit(exitCodes.ok);
  say(`the output could not be written: ${error.message}`);
  process.exit(exitCodes.notWritten);
});
process.stderr.on('error', () => undefined);
process.exitCode = await main(process.argv.slice(2));
// Whatever a client has left open must not keep the caller waiting.
setTimeout(() => process.exit(), 1000).unref();
