import { randomBytes } from 'node:crypto';
import { LocalFuture, type FutureOwner } from './localFuture.js';

export interface FutureStoreOptions {
  /** How long a settled future is kept for whoever asks again. */
  readonly keepMs: number;
  readonly now: () => number;
  /** Plain numbers for ids, as some servers give; nothing then tells a forgotten one from one that never was. */
  readonly plainIds?: boolean;
}

const REQUEST_ID = /^[0-9a-f]{12}-(\d+)$/;

/** Every promise given and not yet forgotten, by request id. */
export class FutureStore {
  readonly #nonce = randomBytes(6).toString('hex');
  readonly #futures = new Map<string, LocalFuture>();
  readonly #options: FutureStoreOptions;
  #count = 0;

  constructor(options: FutureStoreOptions) {
    this.#options = options;
  }

  create(owner: FutureOwner, onSettled: (future: LocalFuture) => void = () => undefined): LocalFuture {
    this.#forgetOld();
    const { plainIds = false } = this.#options;
    const requestId = plainIds ? String(++this.#count) : `${this.#nonce}-${this.#count++}`;
    const future = new LocalFuture(requestId, owner, this.#options.now(), (settled) => {
      settled.settledAt = this.#options.now();
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

  /** Drops a settled future: who polls it from now on is told that it is gone. */
  forget(requestId: string): boolean {
    return this.#futures.get(requestId)?.pending === false && this.#futures.delete(requestId);
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
    const before = this.#options.now() - this.#options.keepMs;
    for (const [requestId, future] of this.#futures) {
      if (future.settledAt === undefined) continue;
      if (future.settledAt >= before) return;
      this.#futures.delete(requestId);
    }
  }
}
