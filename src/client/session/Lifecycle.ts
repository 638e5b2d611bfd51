import {
  Subject,
  defer,
  filter,
  ignoreElements,
  merge,
  startWith,
  switchMap,
  take,
  takeUntil,
  tap,
  type Observable,
  type SchedulerLike,
  type Subscription,
} from 'rxjs';
import { longTimer } from '../../support/longTimer.js';
import type { OnExit } from '../../transport/system.js';
import { isTinkerError, ValidationError, type TinkerError } from '../../wire/tinkerError.js';
import { bind, CALL_OPTIONS, checkLimits, type CallOptions } from '../CallOptions.js';
import { refuseUnknownKeys } from '../../wire/record.js';
import { ClosedError, UnexpectedError } from '../errors.js';
import type { EventBus, WorkKind } from '../events.js';
import { TinkerFuture, type OnAccepted } from '../TinkerFuture.js';
import type { PendingCall } from './pending.js';
import { UnreadFailures } from './UnreadFailures.js';
import { WorkProgress } from './WorkProgress.js';

/** A call, from when it is made to its end. */
interface Started {
  future: TinkerFuture<unknown> | undefined;
  /** What ends it at its time limit or its signal. */
  bound: Subscription | undefined;
  readonly kind: WorkKind | undefined;
  readonly sinceMs: number;
}

/** What the life of calls needs of a connection. */
interface Clocks {
  readonly events: EventBus;
  readonly scheduler: SchedulerLike;
  readonly background: SchedulerLike;
  readonly onExit: OnExit;
}

const AN_HOUR_MS = 3_600_000;

/** The pending calls of one client, so that closing can wait for them. */
export class Lifecycle {
  readonly #active = new Set<Started>();
  readonly #ended = new Subject<void>();
  readonly #events: EventBus;
  readonly #scheduler: SchedulerLike;
  readonly #unread: UnreadFailures;
  readonly #progress: WorkProgress;
  #closed = false;
  /** Pieces of work that have ended so far, and when the last did. */
  endedCount = 0;
  lastEndMs = 0;

  constructor({ events, scheduler, background, onExit }: Clocks) {
    this.#events = events;
    this.#scheduler = scheduler;
    this.#unread = new UnreadFailures(events, background, onExit);
    this.#progress = new WorkProgress(events, background, this);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Starts work as a future, and remembers of which kind it is. Reads `signal` and `timeoutMs` of `call`, which may have the options
   * `names` besides, or any that the work has `checked`. Every failure is a TinkerError and an event, also an unread
   * one.
   */
  start<A>(
    work: (onAccepted: OnAccepted) => Observable<A>,
    kind?: WorkKind,
    call: CallOptions = {},
    names: ReadonlySet<string> | 'checked' = CALL_OPTIONS,
  ): TinkerFuture<A> {
    // The work may end before there is a future at all.
    let isOver = false;
    const started: Started = { future: undefined, bound: undefined, kind, sinceMs: this.#scheduler.now() };
    const future = new TinkerFuture<A>(
      (onAccepted) => {
        if (this.#closed) throw new ClosedError('the client is closed');
        if (typeof call !== 'object' || call === null) throw new ValidationError('options must be an object');
        if (names !== 'checked') refuseUnknownKeys(call, names, 'options');
        if (call.signal !== undefined || call.timeoutMs !== undefined) checkLimits(call);
        return work(onAccepted);
      },
      {
        onFailure: (thrown) => this.#sayFailed(asTinkerError(thrown), started),
        onEnd: () => {
          isOver = true;
          started.bound?.unsubscribe();
          if (!this.#active.delete(started)) return;
          if (kind !== undefined) {
            this.endedCount++;
            this.lastEndMs = this.#scheduler.now();
          }
          this.#ended.next();
        },
      },
    );
    started.future = future;
    if (isOver) return future;
    this.#active.add(started);
    if (kind !== undefined && !this.#progress.isRunning) this.#progress.start();
    if (call.signal !== undefined || call.timeoutMs !== undefined) started.bound = bind(future, call, this.#scheduler);
    return future;
  }

  #sayFailed(error: TinkerError, started: Started): TinkerError {
    const { future, kind, sinceMs } = started;
    const requestId = error.requestId ?? future?.requestId;
    const elapsedMs = this.#scheduler.now() - sinceMs;
    const id = requestId === undefined ? {} : { requestId };
    this.#events.emit({ type: 'request-failed', elapsedMs, error, ...kind, ...id });
    this.#unread.add({ error, kind, isRead: () => started.future?.observed ?? false });
    return error;
  }

  /** The pending calls, the oldest first. */
  *calls(): Iterable<PendingCall> {
    for (const { future, kind, sinceMs } of this.#active) {
      yield { requestType: kind?.requestType, target: kind?.target, sinceMs, requestId: future?.requestId };
    }
  }

  /** Refuses new work from here on. */
  close(): void {
    this.#closed = true;
  }

  /**
   * Emits and completes when no call is pending. Those that are left when none has ended for `timeoutMs` fail with a
   * ClosedError. Failures that nobody has read by then are reported.
   */
  whenIdle(timeoutMs = AN_HOUR_MS): Observable<void> {
    return defer(() => {
      const ended = this.#ended.pipe(startWith(undefined));
      const idle = ended.pipe(
        filter(() => this.#active.size === 0),
        take(1),
      );
      const late = ended.pipe(
        switchMap(() => longTimer(timeoutMs, this.#scheduler)),
        tap(() => this.#giveUp(timeoutMs)),
        ignoreElements(),
        takeUntil(idle),
      );
      return merge(idle, late).pipe(
        take(1),
        tap(() => {
          this.#progress.stop();
          this.#unread.end();
        }),
      );
    });
  }

  cancelAll(): void {
    for (const { future } of [...this.#active]) future?.cancel();
  }

  #giveUp(timeoutMs: number): void {
    const message = `the client was closed while this call was pending: no call finished for ${timeoutMs / 1000} s`;
    for (const { future } of [...this.#active])
      future?.abandon(new ClosedError(message, { requestId: future.requestId }));
  }
}

/** The error itself where it is a TinkerError, else one that has it for its cause: every failure has a code. */
const asTinkerError = (error: unknown): TinkerError =>
  isTinkerError(error)
    ? error
    : new UnexpectedError(
        error instanceof Error ? `${error.name}: ${error.message}` : 'a value that is not an Error was thrown',
        {
          cause: error,
        },
      );
