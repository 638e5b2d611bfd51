import { readFile } from 'node:fs/promises';
import { replaceFile } from '../../support/files/writeAtomically.js';
import { Mutex } from '../store/mutex.js';

const HOUR_MS = 3_600_000;
export const GIGABYTE = 1e9;

/** What was used: tokens trained, read or sampled, checkpoints written, or gigabyte-hours kept. */
export type UsageKind =
  | { readonly type: 'training' | 'sampling_sample' }
  | { readonly type: 'sampling_prefill'; readonly cached: boolean }
  | { readonly type: 'checkpoint' }
  | { readonly type: 'storage' };

export interface UsageBucket {
  /** Start of the UTC hour. */
  readonly startMs: number;
  readonly baseModel?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly kind: UsageKind;
  readonly amount: number;
}

/** A stretch of time in which some bytes were kept. */
export interface StoragePeriod {
  readonly fromMs: number;
  readonly toMs: number;
  readonly sizeBytes: number;
  readonly baseModel?: string | undefined;
  readonly sessionId?: string | undefined;
}

/** Counts what ran, by the hour. Written to disk soon after a change, and when the service stops. */
export class UsageLedger {
  readonly #buckets = new Map<string, UsageBucket>();
  readonly #mutex = new Mutex();
  #timer: NodeJS.Timeout | undefined;

  private constructor(
    private readonly path: string,
    private readonly now: () => number,
    buckets: readonly UsageBucket[],
  ) {
    for (const bucket of buckets) this.#add(bucket);
  }

  static async open(path: string, now: () => number): Promise<UsageLedger> {
    return new UsageLedger(path, now, await readBuckets(path));
  }

  record(kind: UsageKind, amount: number, attribution: Pick<UsageBucket, 'baseModel' | 'sessionId'>): void {
    if (amount <= 0) return;
    this.#add({ startMs: Math.floor(this.now() / HOUR_MS) * HOUR_MS, kind, amount, ...attribution });
    this.#saveSoon();
  }

  /** Adds what a deleted checkpoint has cost while it was there. */
  recordStorage(period: StoragePeriod): void {
    for (const bucket of storageBuckets(period)) this.#add(bucket);
    this.#saveSoon();
  }

  /** Buckets that start in [from, to), with what is still kept counted in. */
  between(fromMs: number, toMs: number, kept: readonly StoragePeriod[]): UsageBucket[] {
    const merged = new Map(this.#buckets);
    for (const period of kept) for (const bucket of storageBuckets(period)) merge(merged, bucket);
    return [...merged.values()]
      .filter(({ startMs }) => startMs >= fromMs && startMs < toMs)
      .sort((a, b) => a.startMs - b.startMs || b.amount - a.amount);
  }

  async close(): Promise<void> {
    if (this.#timer === undefined) return this.#mutex.run(() => Promise.resolve());
    clearTimeout(this.#timer);
    await this.#save();
  }

  #add(bucket: UsageBucket): void {
    merge(this.#buckets, bucket);
  }

  #saveSoon(): void {
    this.#timer ??= setTimeout(() => void this.#save().catch(() => undefined), 1000).unref();
  }

  #save(): Promise<void> {
    this.#timer = undefined;
    const text = JSON.stringify({ version: 1, buckets: [...this.#buckets.values()] });
    return this.#mutex.run(() => replaceFile(this.path, text));
  }
}

function merge(buckets: Map<string, UsageBucket>, bucket: UsageBucket): void {
  const { startMs, baseModel, sessionId, kind } = bucket;
  const key = JSON.stringify([startMs, baseModel, sessionId, kind.type, 'cached' in kind ? kind.cached : null]);
  buckets.set(key, { ...bucket, amount: bucket.amount + (buckets.get(key)?.amount ?? 0) });
}

function* storageBuckets({ fromMs, toMs, sizeBytes, ...attribution }: StoragePeriod): Generator<UsageBucket> {
  for (let startMs = Math.floor(fromMs / HOUR_MS) * HOUR_MS; startMs < toMs; startMs += HOUR_MS) {
    const hours = (Math.min(toMs, startMs + HOUR_MS) - Math.max(fromMs, startMs)) / HOUR_MS;
    yield { startMs, kind: { type: 'storage' }, amount: (hours * sizeBytes) / GIGABYTE, ...attribution };
  }
}

/** What can be read of the file: nobody pays by it, so a damaged one must not keep the service from starting. */
async function readBuckets(path: string): Promise<UsageBucket[]> {
  try {
    const { buckets } = JSON.parse(await readFile(path, 'utf8')) as { readonly buckets: readonly unknown[] };
    return buckets.filter(isBucket);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || error instanceof SyntaxError || error instanceof TypeError) return [];
    throw error;
  }
}

function isBucket(value: unknown): value is UsageBucket {
  const { startMs, amount, kind } = (value ?? {}) as Partial<UsageBucket>;
  return Number.isFinite(startMs) && Number.isFinite(amount) && typeof kind?.type === 'string';
}
