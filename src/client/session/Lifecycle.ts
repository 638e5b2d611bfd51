import { Subject, defer, of, take, type Observable, type SchedulerLike, type Subscription } from 'rxjs';
import { isTinkerError, type TinkerError } from '../../wire/tinkerError.js';
import { bind, checkCallOptions, type CallOptions } from '../CallOptions.js';
import { ClosedError } from '../errors.js';
import type { EventBus, WorkKind } from '../events.js';
import { TinkerFuture, type FutureProgress } from '../TinkerFuture.js';
import type { CallUnderWay } from './underWay.js';

/** A call, from when it is made to its end. */
interface Started {
  future: TinkerFuture<unknown> | undefined;
  readonly kind: WorkKind | undefined;
  readonly sinceMs: number;
}

/** The futures of one client that are still under way, so that closing can wait for them. */
export class Lifecycle {
  readonly #active = new Set<Started>();
  readonly #idle = new Subject<void>();
  #closed = false;

  constructor(
    readonly events: EventBus,
    readonly scheduler: SchedulerLike,
  ) {}

  get closed(): boolean {
    return this.#closed;
  }

  /** Starts work as a future, and remembers of which kind it is. Of the options only those of every call are read. Every failure is an event, also one that nobody reads. */
  start<A>(
    work: (progress: FutureProgress) => Observable<A>,
    kind?: WorkKind,
    call: CallOptions = {},
  ): TinkerFuture<A> {
    // The work may end before there is a future at all.
    let over = false;
    let bound: Subscription | undefined;
    const started: Started = { future: undefined, kind, sinceMs: this.events.now() };
    const future = new TinkerFuture<A>(
      (progress) => {
        if (this.#closed) throw new ClosedError('the client is closed');
        checkCallOptions(call);
        return work(progress);
      },
      (error) => {
        over = true;
        bound?.unsubscribe();
        if (started.future !== undefined) this.#end(started);
        if (isTinkerError(error)) this.#sayFailed(error, started);
      },
    );
    started.future = future;
    if (!over) {
      this.#active.add(started);
      if (call.signal !== undefined || call.timeoutMs !== undefined) bound = bind(future, call, this.scheduler);
    }
    return future;
  }

  #end(started: Started): void {
    if (this.#active.delete(started) && this.#active.size === 0) this.#idle.next();
  }

  #sayFailed(error: TinkerError, { future, kind, sinceMs }: Started): void {
    const requestId = error.requestId ?? future?.requestId;
    const elapsedMs = this.events.now() - sinceMs;
    const id = requestId === undefined ? {} : { requestId };
    this.events.emit({ type: 'request-failed', elapsedMs, error, ...kind, ...id });
  }

  /** What is under way, the oldest first. */
  *calls(): Iterable<CallUnderWay> {
    for (const { future, kind, sinceMs } of this.#active) {
      yield { requestType: kind?.requestType, target: kind?.target, sinceMs, requestId: future?.requestId };
    }
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
    for (const { future } of [...this.#active]) future?.cancel();
  }
}
