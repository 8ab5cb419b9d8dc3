/** What `list`, `show` and `release` write to stdout: in large pieces, and no faster than it is read. */
import { once } from 'node:events';
import type { LeaseRecord } from '../stores/store.ts';
import { duration, printable } from './terminal.ts';

const PIECE_CHARACTERS = 65_536;

/** Writes line by line to stdout, in pieces. */
export class LineWriter {
  #buffer = '';

  async line(text: string): Promise<void> {
    this.#buffer += `${text}\n`;
    if (this.#buffer.length >= PIECE_CHARACTERS) await this.flush();
  }

  async flush(): Promise<void> {
    const piece = this.#buffer;
    this.#buffer = '';
    if (piece !== '' && !process.stdout.write(piece)) await once(process.stdout, 'drain');
  }
}

type Row = readonly string[];

const HEADER: Row = ['RUN', 'STATE', 'WORKER', 'TOKEN', 'LEFT'];

/** The columns are as wide as the first rows need. Later rows that need more only push their own line. */
export class RecordTable {
  readonly #writer: LineWriter;
  #first: Row[] | null = [HEADER];
  #widths: readonly number[] = [];

  constructor(writer: LineWriter) {
    this.#writer = writer;
  }

  async add(record: LeaseRecord): Promise<void> {
    const row = toRow(record);
    if (this.#first === null) return this.#write(row);
    if (this.#first.push(row) > 500) await this.#writeFirst();
  }

  async end(): Promise<void> {
    await this.#writeFirst();
    await this.#writer.flush();
  }

  async #writeFirst(): Promise<void> {
    const first = this.#first ?? [];
    this.#first = null;
    if (first.length > 0) this.#widths = HEADER.map((_, column) => widest(first, column));
    for (const row of first) await this.#write(row);
  }

  async #write(row: Row): Promise<void> {
    await this.#writer.line(
      row
        .map((cell, column) => cell.padEnd(this.#widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
  }
}

function widest(rows: readonly Row[], column: number): number {
  return rows.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), 0);
}

function toRow(record: LeaseRecord): Row {
  return [
    printable(record.runId),
    record.state,
    printable(record.workerId),
    String(record.fencingToken),
    record.state === 'held' ? duration(record.remainingSeconds) : '-',
  ];
}
