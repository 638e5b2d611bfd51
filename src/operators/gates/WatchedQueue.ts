import { Queue } from '../../support/Queue.js';
import { backpressureEvents } from './backpressureEvents.js';

const LONG = 1000;
const PAGE = 'docs/backpressure.md#where-it-ends';
const warned = new Set<string>();

/** For tests: each operator warns again. */
export const forgetWarnings = (): void => warned.clear();

/** A queue that tells when it grows long, which means that what feeds it does not pause. */
export class WatchedQueue<T> extends Queue<T> {
  #tellAt = LONG;

  constructor(private readonly operator: string) {
    super();
  }

  override push(item: T): void {
    super.push(item);
    if (this.length < this.#tellAt) return;
    this.#tellAt = this.length * 2;
    backpressureEvents.next({ type: 'queue-grown', operator: this.operator, queued: this.length, page: PAGE });
    if (warned.has(this.operator)) return;
    warned.add(this.operator);
    const message =
      `tinker-rx: ${this.operator} has ${this.length} values waiting. What feeds it does not pause, so memory is not ` +
      `bounded. ${PAGE} in the package explains why and what to do; backpressure$ reports when it grows further.`;
    // Node's own channel for warnings can be silenced and traced; browsers have none.
    if (typeof process === 'object' && typeof process.emitWarning === 'function') process.emitWarning(message);
    else console.warn(message);
  }
}
