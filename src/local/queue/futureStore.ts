import { randomBytes } from 'node:crypto';
import { LocalFuture, type FutureOwner } from './localFuture.js';

export interface FutureStoreOptions {
  /** How long a settled future is kept for repeated polls. */
  readonly keepMs: number;
  /** Results kept at most; the oldest go first. */
  readonly keepBytes: number;
  readonly now: () => number;
  /** Plain numbers as ids, as some servers give. A forgotten id then cannot be told from one that never existed. */
  readonly plainIds?: boolean;
}

/** Of a future itself. */
const OVERHEAD_BYTES = 1000;
const REQUEST_ID = /^[0-9a-f]{12}-(\d+)$/;

/** Every promise given and not yet forgotten, by request id. */
export class FutureStore {
  readonly #nonce = randomBytes(6).toString('hex');
  readonly #futures = new Map<string, LocalFuture>();
  #count = 0;
  #keptBytes = 0;

  constructor(private readonly options: FutureStoreOptions) {}

  create(owner: FutureOwner, onSettled: (future: LocalFuture) => void = () => undefined): LocalFuture {
    this.#forgetOld();
    const { plainIds = false } = this.options;
    const requestId = plainIds ? String(++this.#count) : `${this.#nonce}-${this.#count++}`;
    const future = new LocalFuture(requestId, owner, this.options.now(), (settled) => {
      settled.settledAt = this.options.now();
      this.#keptBytes += bytesOf(settled);
      onSettled(settled);
    });
    this.#futures.set(future.requestId, future);
    return future;
  }

  /** The future, `'gone'` for one that was given once (also by an earlier process) and is forgotten, or undefined. */
  find(requestId: string): LocalFuture | 'gone' | undefined {
    const future = this.#futures.get(requestId);
    if (future !== undefined) return future;
    const [, count] = REQUEST_ID.exec(requestId) ?? [];
    if (count === undefined) return undefined;
    return !requestId.startsWith(this.#nonce) || Number(count) < this.#count ? 'gone' : undefined;
  }

  /** Drops a settled future: later polls are answered that it is gone. */
  forget(requestId: string): boolean {
    const future = this.#futures.get(requestId);
    if (future === undefined || future.pending) return false;
    this.#drop(future);
    return true;
  }

  /** Wakes all who wait for a future, so that they can report a changed queue state. */
  notifyAll(): void {
    for (const future of this.#futures.values()) if (future.pending) future.changes.notify();
  }

  pendingOf(sessionId: string): LocalFuture[] {
    return [...this.#futures.values()].filter((future) => future.pending && future.owner.sessionId === sessionId);
  }

  /** Futures settle nearly in the order they were made, so the old ones stand first. */
  #forgetOld(): void {
    const before = this.options.now() - this.options.keepMs;
    for (const future of this.#futures.values()) {
      if (future.settledAt === undefined) continue;
      if (future.settledAt >= before && this.#keptBytes <= this.options.keepBytes) return;
      this.#drop(future);
    }
  }

  #drop(future: LocalFuture): void {
    this.#keptBytes -= bytesOf(future);
    this.#futures.delete(future.requestId);
    future.release();
  }
}

/** About what a result takes in memory. */
function bytesOf({ state }: LocalFuture): number {
  if (state.type !== 'finished') return OVERHEAD_BYTES;
  const { result } = state;
  if (result.type === 'sample') {
    const { sequences, promptLogprobs, topkPromptLogprobs } = result.value;
    const prompt = (promptLogprobs?.byteLength ?? 0) + 2 * (topkPromptLogprobs?.logprobs.byteLength ?? 0);
    return sequences.reduce(
      (sum, { tokens, topkLogprobs }) => sum + 2 * tokens.byteLength + 2 * (topkLogprobs?.logprobs.byteLength ?? 0),
      OVERHEAD_BYTES + prompt,
    );
  }
  if (result.type === 'json') return OVERHEAD_BYTES;
  return result.value.lossFnOutputs.reduce(
    (sum, output) => Object.values(output).reduce((inner, { data }) => inner + data.byteLength, sum),
    OVERHEAD_BYTES,
  );
}
