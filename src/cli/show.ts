/** `lessor show RUN`: all that the store knows about one run. */
import { leaseIdOf } from '../../machines/lease.rules.ts';
import type { LeaseRecord, LeaseStore } from '../stores/store.ts';
import type { ShowInvocation } from './arguments.ts';
import { exitCodes } from './exit-codes.ts';
import { LineWriter } from './output.ts';
import { duration, moment, printable, say } from './terminal.ts';

export async function show(store: LeaseStore, { runId, json }: ShowInvocation): Promise<number> {
  const record = await store.read(runId);
  if (record === null) {
    say(`run ${printable(runId)} was never leased here`);
    return exitCodes.nothing;
  }
  const writer = new LineWriter();
  const lines = json ? [JSON.stringify(record)] : describe(record).map(([name, value]) => `${name.padEnd(10)}${value}`);
  for (const line of lines) await writer.line(line);
  await writer.flush();
  return exitCodes.ok;
}

function describe(record: LeaseRecord): Array<readonly [string, string]> {
  const { runId, state, workerId, fencingToken, acquiredAt, expiresAt, remainingSeconds, ttlSeconds, fence } = record;
  return [
    ['run', printable(runId)],
    ['state', `${state}, ${meaning(record)}`],
    ['worker', printable(workerId)],
    ['token', String(fencingToken)],
    ['lease', printable(leaseIdOf(runId, workerId, fencingToken))],
    ['acquired', moment(acquiredAt)],
    ['expires', expiresAt === null ? '-' : moment(expiresAt)],
    ['remaining', duration(remainingSeconds)],
    ['ttl', duration(ttlSeconds)],
    ['fence', `${fence}, the highest token ever issued`],
    ['revoked', revocation(record)],
  ];
}

function meaning({ state, revoked }: LeaseRecord): string {
  switch (state) {
    case 'held':
      return 'the worker has it';
    case 'expired':
      return 'the worker stopped renewing, and the next one to ask gets it';
    case 'free':
      return revoked ? 'taken away from the worker' : 'given back by the worker';
    default:
      return state satisfies never;
  }
}

function revocation({ revoked }: LeaseRecord): string {
  return revoked ? `${moment(revoked.at)} by ${printable(revoked.by)}: ${printable(revoked.reason)}` : '-';
}
