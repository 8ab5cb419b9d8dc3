/** `lessor list`: every run that the store knows, as it comes. */
import type { LeaseStore } from '../stores/store.ts';
import type { ListInvocation } from './arguments.ts';
import { exitCodes } from './exit-codes.ts';
import { LineWriter, RecordTable } from './output.ts';

export async function list(store: LeaseStore, { json, state, workerId, prefix }: ListInvocation): Promise<number> {
  const records = store.list({ state, workerId, prefix });
  const writer = new LineWriter();
  if (json) {
    for await (const record of records) await writer.line(JSON.stringify(record));
    await writer.flush();
  } else {
    const table = new RecordTable(writer);
    for await (const record of records) await table.add(record);
    await table.end();
  }
  return exitCodes.ok;
}
