import type { LeaseStore } from '../stores/store.ts';
import type { DocumentStore } from './documents.ts';
import type { Session, SessionOptions } from './session.ts';

/** A store that keeps leases and, under their fences, the documents of runs. All stores of this package are such. */
export interface FencedStore extends LeaseStore, DocumentStore {
  /** Opens a fenced read-modify-write. See {@link openSession}. */
  session(options: SessionOptions): Promise<Session>;
}
