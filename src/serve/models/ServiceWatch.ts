import { Observable, type Subscriber } from 'rxjs';
import { isTinkerError } from '../../client/errors.js';
import { GatewayError, unreachable } from '../http/GatewayError.js';

const CHECK_MS = 5000;
const CHECK_AGAIN_MS = 1000;

/**
 * Notices when the service behind a gateway is gone. The client tries again for hours, which suits training; callers of
 * a gateway want to be told. While samples wait and none has finished for a while, the service is asked for something
 * small. Without an answer everything that waits fails with 503, and so does all else until the service answers again.
 */
export class ServiceWatch {
  readonly #waiting = new Set<Subscriber<never>>();
  #timer: NodeJS.Timeout | undefined;
  #reachable = true;
  /** Whether a sample has finished since the last look. */
  #alive = false;
  #closed = false;

  constructor(
    private readonly probe: (timeoutMs: number) => PromiseLike<unknown>,
    private readonly checkMs = CHECK_MS,
  ) {}

  get reachable(): boolean {
    return this.#reachable;
  }

  /** Work that fails with a GatewayError 503 when the service is gone, at once where that is known; `onResult` is told first. */
  guard<T>(work: Observable<T>, onResult: (value: T) => void = () => undefined): Observable<T> {
    return new Observable((subscriber) => {
      if (!this.#reachable) return subscriber.error(unreachable());
      this.#waiting.add(subscriber);
      this.#schedule(this.checkMs);
      const working = work.subscribe({
        next: (value) => {
          this.#alive = true;
          onResult(value);
          subscriber.next(value);
        },
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
      return () => {
        this.#waiting.delete(subscriber);
        working.unsubscribe();
      };
    });
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #schedule(delayMs: number): void {
    if (this.#timer !== undefined || this.#closed) return;
    this.#timer = setTimeout(() => void this.#look(), delayMs);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    // Asked twice: one lost answer is no outage.
    this.#reachable = this.#alive || (await this.#answers()) || (await this.#answers());
    this.#alive = false;
    this.#timer = undefined;
    if (!this.#reachable) for (const subscriber of [...this.#waiting]) subscriber.error(unreachable());
    if (!this.#reachable) this.#schedule(Math.min(CHECK_AGAIN_MS, this.checkMs));
    else if (this.#waiting.size > 0) this.#schedule(this.checkMs);
  }

  async #answers(): Promise<boolean> {
    try {
      await this.probe(this.checkMs);
      return true;
    } catch (error) {
      // A refusal is an answer as well.
      if (error instanceof GatewayError) return error.status !== 503;
      return !(isTinkerError(error) && (error.code === 'connection' || error.code === 'timeout'));
    }
  }
}
