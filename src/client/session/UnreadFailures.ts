import type { SchedulerLike, Subscription } from 'rxjs';
import type { OnExit } from '../../transport/system.js';
import { CancelledError, type TinkerError } from '../errors.js';
import type { EventBus, WorkKind } from '../events.js';

/** A failed call, and whether anybody has read its future by now. */
export interface FailedCall {
  readonly error: TinkerError;
  readonly kind: WorkKind | undefined;
  readonly isRead: () => boolean;
}

/** A future may be read later than it fails, so a failure counts as unread only after this long, or at the end. */
const UNREAD_AFTER_MS = 60_000;
const MOST_REMEMBERED = 1000;

/** Emits an event for each unread failure, once. Cancelled calls do not count. */
export class UnreadFailures {
  readonly #failed = new Map<FailedCall, number>();
  #timer: Subscription | undefined;
  #forgetExit: (() => void) | undefined;

  constructor(
    readonly events: EventBus,
    /** Does not keep the process alive. */
    readonly background: SchedulerLike,
    readonly onExit: OnExit,
  ) {}

  add(failed: FailedCall): void {
    if (failed.error instanceof CancelledError || failed.isRead()) return;
    if (this.#failed.size >= MOST_REMEMBERED) this.#tell(Infinity);
    this.#failed.set(failed, this.events.scheduler.now());
    if (this.#failed.size > 1) return;
    this.#setTimer(UNREAD_AFTER_MS);
    // A program that forgets to close its client may end sooner than the timer.
    this.#forgetExit ??= this.onExit(() => this.#tell(Infinity));
  }

  /** The client ends: what is unread now will never be read. */
  end(): void {
    this.#timer?.unsubscribe();
    this.#tell(Infinity);
  }

  #setTimer(delayMs: number): void {
    this.#timer?.unsubscribe();
    this.#timer = this.background.schedule(() => {
      this.#tell(this.events.scheduler.now() - UNREAD_AFTER_MS);
      const [next] = this.#failed.values();
      if (next !== undefined) this.#setTimer(next + UNREAD_AFTER_MS - this.events.scheduler.now());
    }, delayMs);
  }

  #tell(failedUntilMs: number): void {
    for (const [failed, atMs] of this.#failed) {
      if (atMs > failedUntilMs) return;
      this.#failed.delete(failed);
      const { error, kind, isRead } = failed;
      if (!isRead()) this.events.emit({ type: 'failure-unread', error, ...kind });
    }
    this.#forgetExit?.();
    this.#forgetExit = undefined;
  }
}
