/** The implementation: what runs in production, and what the paths test. */
export class Uploader {
  state = 'idle';
  #registry;
  #lease = null;

  constructor(registry) {
    this.#registry = registry;
  }

  start(now) {
    this.#lease = this.#registry.acquire('file', 'uploader', now);
    if (this.#lease) this.state = 'uploading';
  }

  /** Uploads one part more, or finds that the run is lost. */
  part(now) {
    const { leaseId, fencingToken } = this.#lease;
    if (!this.#registry.heartbeat(leaseId, fencingToken, now)) this.state = 'stopped';
  }

  finish() {
    const { leaseId, fencingToken } = this.#lease;
    this.state = this.#registry.release(leaseId, fencingToken) ? 'finished' : 'stopped';
  }
}

/** The same with a fault planted: it calls a file finished whoever has the run. */
export class HastyUploader extends Uploader {
  finish() {
    super.finish();
    this.state = 'finished';
  }
}
