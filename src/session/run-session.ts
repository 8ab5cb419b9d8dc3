import { checkString } from '../options.ts';
import type { Json } from './json.ts';
import { copyJson } from './json.ts';
import type { RunDocument } from './documents.ts';

/** One run in a session: its fields as they were when the session was opened, with the session's own writes over them. */
export class RunSession {
  readonly runId: string;
  /** As it was when the session was opened; 0 when nobody had written the run. */
  readonly version: number;
  readonly #fields: Map<string, Json>;
  readonly #checkOpen: () => void;
  #read = false;
  #written = false;

  /** @internal Sessions make these. */
  constructor({ runId, version, json }: RunDocument, checkOpen: () => void) {
    this.runId = runId;
    this.version = version;
    this.#fields = new Map(Object.entries(JSON.parse(json) as Record<string, Json>));
    this.#checkOpen = checkOpen;
  }

  /** The field's value, a copy, or undefined where there is none. */
  async read(field: string): Promise<Json | undefined> {
    checkString('field', field);
    this.#checkOpen();
    this.#read = true;
    const value = this.#fields.get(field);
    return value === undefined ? undefined : copyJson('value', value);
  }

  /** All fields, copies. */
  async readAll(): Promise<Record<string, Json>> {
    this.#checkOpen();
    this.#read = true;
    return JSON.parse(this.toJson()) as Record<string, Json>;
  }

  /** Writes the field when the session commits. @throws TypeError for a value that JSON cannot hold. */
  write(field: string, value: Json): void {
    checkString('field', field);
    this.#checkOpen();
    this.#fields.set(field, copyJson('value', value));
    this.#written = true;
  }

  /** Takes the field away when the session commits. */
  delete(field: string): void {
    checkString('field', field);
    this.#checkOpen();
    this.#fields.delete(field);
    this.#written = true;
  }

  /** @internal */
  get wasRead(): boolean {
    return this.#read;
  }

  /** @internal */
  get wasWritten(): boolean {
    return this.#written;
  }

  /** @internal The document as text. */
  toJson(): string {
    return JSON.stringify(Object.fromEntries(this.#fields));
  }
}
