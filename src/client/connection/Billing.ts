import type { EventBus } from '../events.js';

const RESET_AFTER_MS = 5 * 60_000;
const SAY_EVERY_MS = 60_000;
export const BILLING_RETRY_MS = 5_000;

/**
 * How long this service has been answering 402. All requests of a service share it: the account is one, and so is the
 * pause.
 */
export class Billing {
  #since: number | undefined;
  #last: number | undefined;
  #said: number | undefined;

  constructor(
    readonly longestPauseMs: () => number,
    readonly events: EventBus,
  ) {}

  /** Notes a 402 and returns whether to keep waiting. Emits an event once a minute. */
  mayWait(message: string): boolean {
    const now = this.events.scheduler.now();
    if (this.#since === undefined || this.#last === undefined || now - this.#last > RESET_AFTER_MS) {
      this.#since = now;
      this.#said = undefined;
    }
    this.#last = now;
    const pausedMs = now - this.#since;
    if (pausedMs > this.longestPauseMs()) return false;
    if (this.#said === undefined || now - this.#said >= SAY_EVERY_MS) {
      this.#said = now;
      this.events.emit({ type: 'billing-paused', pausedMs, message });
    }
    return true;
  }
}
