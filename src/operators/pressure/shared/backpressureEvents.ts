import { Subject } from 'rxjs';
import { Queue } from '../../../support/Queue.js';
import { warnProcess } from '../../../support/warnProcess.js';
import type { BackpressureEvent } from '../backpressure.js';
import { currentGate, type Gate } from '../gate.js';
import { currentScope } from './FlowMeter.js';

/** Where operators and sources tell what `backpressure$` shows. */
export const backpressureEvents = new Subject<BackpressureEvent>();

/** For a source, on subscribe: the gate it has to look at, if any; `backpressure$` reports whether it found one. */
export function findGate(source: string): Gate | undefined {
  const gate = currentGate();
  backpressureEvents.next({ type: 'source-opened', source, gated: gate !== undefined });
  return gate;
}

const LONG = 1000;
const PAGE = 'docs/backpressure.md#where-it-ends';
const warned = new Set<string>();

/** For tests: each operator warns again. */
export const forgetWarnings = (): void => warned.clear();

/** A queue that tells when it grows long, which means that what feeds it does not pause. */
export class WatchedQueue<T> extends Queue<T> {
  #tellAt: number;

  /** `room` is how much may wait in it while what feeds it does pause. */
  constructor(
    private readonly operator: string,
    room = 0,
  ) {
    super();
    this.#tellAt = LONG + room;
    currentScope().owner?.holds(this);
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
    warnProcess(message);
  }
}
