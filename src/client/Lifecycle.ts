import { Subject, defer, of, take, type Observable } from 'rxjs';
import { isTinkerError, type TinkerError } from '../wire/tinkerError.js';
import { ClosedError } from './errors.js';
import type { EventBus } from './events.js';
import { TinkerFuture, type FutureProgress } from './TinkerFuture.js';

/** The futures of one client that are still under way, so that closing can wait for them. */
export class Lifecycle {
  readonly #active = new Set<{ cancel(): void }>();
  readonly #idle = new Subject<void>();
  #closed = false;

  constructor(readonly events: EventBus) {}

  get closed(): boolean {
    return this.#closed;
  }

  /** Starts work as a future. Every failure is an event, also one that nobody reads. */
  start<A>(work: (progress: FutureProgress) => Observable<A>): TinkerFuture<A> {
    const startedMs = this.events.now();
    // The work may end before there is a future at all.
    let over = false;
    const started: { future?: TinkerFuture<A> } = {};
    const future = new TinkerFuture<A>(
      (progress) => {
        if (this.#closed) throw new ClosedError('the client is closed');
        return work(progress);
      },
      (error) => {
        over = true;
        if (started.future !== undefined) this.#end(started.future);
        if (isTinkerError(error)) this.#sayFailed(error, startedMs);
      },
    );
    started.future = future;
    if (!over) this.#active.add(future);
    return future;
  }

  #end(future: { cancel(): void }): void {
    if (this.#active.delete(future) && this.#active.size === 0) this.#idle.next();
  }

  #sayFailed(error: TinkerError, startedMs: number): void {
    const { requestId } = error;
    const elapsedMs = this.events.now() - startedMs;
    this.events.emit({ type: 'request-failed', elapsedMs, error, ...(requestId === undefined ? {} : { requestId }) });
  }

  /** Refuses new work from here on. */
  close(): void {
    this.#closed = true;
  }

  /** Emits and completes when nothing is under way. */
  whenIdle(): Observable<void> {
    return defer(() => (this.#active.size === 0 ? of(undefined) : this.#idle.pipe(take(1))));
  }

  cancelAll(): void {
    for (const future of [...this.#active]) future.cancel();
  }
}
