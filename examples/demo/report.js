/**
 * The storage: a document beside the leases, in the same store. A session is opened and committed under the lease that the
 * writer has, and the store takes it only while that lease is the newest of its run. Check and write are one step, so
 * nothing can come in between. That is a fence.
 */
import { LeaseLostError } from 'lessor';

export class Report {
  #store;
  #runId;

  constructor(store, runId) {
    this.#store = store;
    this.#runId = runId;
  }

  /** Writes the line, and tells whether the storage took it. */
  async write(line, lease) {
    const { workerId, fencingToken } = lease;
    try {
      const session = await this.#store.session({ workerId, runs: [this.#runId], fence: lease });
      const report = session.run(this.#runId);
      const lines = (await report.read('lines')) ?? [];
      report.write('lines', lines.concat({ line, worker: workerId, token: fencingToken }));
      await session.commit();
      return true;
    } catch (error) {
      if (error instanceof LeaseLostError) return false;
      throw error;
    }
  }

  /** What it has. Whoever only reads needs no lease. */
  async lines() {
    const session = await this.#store.session({ workerId: 'reader', runs: [this.#runId], fence: 'none' });
    return (await session.run(this.#runId).read('lines')) ?? [];
  }
}
