import { interval, type SchedulerLike, type Subscription } from 'rxjs';
import type { EventBus } from '../events.js';
import type { PendingCall } from './pending.js';

const EVERY_MS = 60_000;

/** The calls of a client, as far as this reports them. */
export interface Work {
  /** Calls that are pending. */
  calls(): Iterable<PendingCall>;
  /** How many have ended so far, successfully or not. */
  readonly endedCount: number;
  readonly lastEndMs: number;
}

/**
 * Says once a minute how the work of a client goes, for as long as there is any: how much waits to be accepted by the
 * service, how much the service has accepted, and how much has ended since the last time.
 */
export class WorkProgress {
  isRunning = false;
  #ticks: Subscription | undefined;

  constructor(
    readonly events: EventBus,
    readonly scheduler: SchedulerLike,
    readonly work: Work,
  ) {}

  /** Begins to tell; it ends when there is no more work. */
  start(): void {
    this.isRunning = true;
    const startedMs = this.events.scheduler.now();
    let told = this.work.endedCount;
    this.#ticks = interval(EVERY_MS, this.scheduler).subscribe(() => {
      const { endedCount, lastEndMs } = this.work;
      const { waiting, running } = this.#count();
      if (waiting + running === 0) return this.stop();
      const quietMs = this.events.scheduler.now() - Math.max(lastEndMs, startedMs);
      this.events.emit({ type: 'work-progress', waiting, running, ended: endedCount - told, quietMs });
      told = endedCount;
    });
  }

  stop(): void {
    this.isRunning = false;
    this.#ticks?.unsubscribe();
  }

  #count(): { readonly waiting: number; readonly running: number } {
    let waiting = 0;
    let running = 0;
    for (const { requestType, requestId } of this.work.calls()) {
      if (requestType === undefined) continue;
      if (requestId === undefined) waiting++;
      else running++;
    }
    return { waiting, running };
  }
}
