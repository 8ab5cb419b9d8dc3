/** The names of all runs in the order of their bytes, from the sorted index of every bucket, in pages. */
import { BUCKETS } from './keys.ts';

/** So many names of a bucket are held at a time; of all buckets at most 256 times that. */
const PAGE = 64;

/** The next names of a bucket, at most `count`, from a bound on as `ZRANGEBYLEX` has it. */
export type ReadPage = (bucket: number, first: string, count: number) => Promise<readonly string[]>;

interface Bucket {
  readonly bucket: number;
  names: Name[];
  /** Where the next page begins, or null when there is none. */
  first: string | null;
}

interface Name {
  readonly runId: string;
  readonly bytes: Buffer;
}

/** Each name comes once: it stays in its index from the first lease of the run on. */
export async function* listRuns(prefix: string, readPage: ReadPage): AsyncGenerator<string[]> {
  const buckets: Bucket[] = Array.from({ length: BUCKETS }, (_, bucket) => ({
    bucket,
    names: [],
    first: prefix === '' ? '-' : `[${prefix}`,
  }));
  for (;;) {
    await Promise.all(buckets.map((bucket) => fill(bucket, prefix, readPage)));
    const names = takeComplete(buckets);
    if (names.length === 0) return;
    yield names;
  }
}

async function fill(bucket: Bucket, prefix: string, readPage: ReadPage): Promise<void> {
  if (bucket.first === null || bucket.names.length > PAGE / 2) return;
  const page = await readPage(bucket.bucket, bucket.first, PAGE);
  const wanted = page.filter((runId) => runId.startsWith(prefix));
  bucket.names.push(...wanted.map((runId) => ({ runId, bytes: Buffer.from(runId) })));
  // Names with one prefix follow each other.
  bucket.first = wanted.length < PAGE ? null : `(${page.at(-1)!}`;
}

/** The names up to the first end of a page that has another page behind it: no bucket has an earlier one left. */
function takeComplete(buckets: readonly Bucket[]): string[] {
  const ends = buckets.filter(({ first }) => first !== null).map(({ names }) => names.at(-1)!.bytes);
  const end = ends.length === 0 ? null : ends.reduce((one, other) => (Buffer.compare(one, other) <= 0 ? one : other));
  const taken: Name[] = [];
  for (const bucket of buckets) {
    const kept = end === null ? -1 : bucket.names.findIndex(({ bytes }) => Buffer.compare(bytes, end) > 0);
    taken.push(...bucket.names.splice(0, kept < 0 ? bucket.names.length : kept));
  }
  return taken.toSorted((one, other) => Buffer.compare(one.bytes, other.bytes)).map(({ runId }) => runId);
}
