import { interval, type SchedulerLike, type Subscription } from 'rxjs';
import type { EventBus } from '../events.js';
import type { PendingCall } from './pending.js';

const EVERY_MS = 60_000;

/**
 * Says once a minute how the work of a client goes, for as long as there is any: how much waits to be accepted by the
 * service, how much the service has accepted, and how much has ended since the last time.
 */
export class WorkProgress {
  #ticks: Subscription | undefined;
  #ended = 0;
  #lastEndMs = 0;

  constructor(
    readonly events: EventBus,
    readonly scheduler: SchedulerLike,
    readonly calls: () => Iterable<PendingCall>,
  ) {}

  /** Work has begun. */
  began(): void {
    if (this.#ticks !== undefined) return;
    this.#ended = 0;
    this.#lastEndMs = this.events.now();
    this.#ticks = interval(EVERY_MS, this.scheduler).subscribe(() => this.#say());
  }

  /** Work has ended, successfully or not. */
  ended(): void {
    this.#ended++;
    this.#lastEndMs = this.events.now();
  }

  stop(): void {
    this.#ticks?.unsubscribe();
    this.#ticks = undefined;
  }

  #say(): void {
    let waiting = 0;
    let running = 0;
    for (const { requestType, requestId } of this.calls()) {
      if (requestType === undefined) continue;
      if (requestId === undefined) waiting++;
      else running++;
    }
    // The next work starts it again.
    if (waiting + running === 0) return this.stop();
    const quietMs = this.events.now() - this.#lastEndMs;
    this.events.emit({ type: 'work-progress', waiting, running, ended: this.#ended, quietMs });
    this.#ended = 0;
  }
}
