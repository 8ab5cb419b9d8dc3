import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';

/** A worker id that no other manager has, also where every process is number 1 of a container with one name. For people to read. */
export function uniqueWorkerId(): string {
  return `${hostname()}:${process.pid}:${randomBytes(6).toString('hex')}`;
}
