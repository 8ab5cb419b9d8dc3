/** `lessor release RUN --force --reason TEXT`: an operator takes a run away. */
import { hostname, userInfo } from 'node:os';
import type { LeaseStore } from '../stores/store.ts';
import type { ReleaseInvocation } from './arguments.ts';
import { exitCodes } from './exit-codes.ts';
import { LineWriter } from './output.ts';
import { printable, say } from './terminal.ts';

export async function release(store: LeaseStore, invocation: ReleaseInvocation): Promise<number> {
  const { runId, reason, json } = invocation;
  const by = invocation.by ?? operator();
  const lease = await store.revoke(runId, { by, reason });
  if (lease === null) {
    say(`nobody has run ${printable(runId)}`);
    return exitCodes.nothing;
  }
  const writer = new LineWriter();
  await writer.line(
    json
      ? JSON.stringify({ revoked: lease, by, reason })
      : `Took run ${printable(runId)} from worker ${printable(lease.workerId)} (token ${lease.fencingToken}).`,
  );
  await writer.flush();
  return exitCodes.ok;
}

/** Who types, for the record. */
function operator(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return `${process.getuid?.() ?? 'somebody'}@${hostname()}`; // a user without a name, as in containers
  }
}
