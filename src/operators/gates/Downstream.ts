import type { Subscriber } from 'rxjs';
import { currentGate, type Gate, withGate } from '../gate.js';
import { Listeners } from './Listeners.js';

/**
 * What lies downstream of an operator: its subscriber, its gate as found on subscribe, and the waiting for that gate.
 * Whatever waits is called once, under the gate, and never after the subscriber is closed.
 */
export class Downstream<R = never> {
  readonly gate: Gate | undefined = currentGate();
  readonly listeners: Listeners;
  #waiting = false;
  #stop: (() => void) | undefined;

  constructor(
    readonly subscriber: Subscriber<R>,
    private readonly resume: () => void,
  ) {
    this.listeners = new Listeners(subscriber);
  }

  get isOpen(): boolean {
    return this.gate === undefined || this.gate.isOpen;
  }

  /** Where the gate is closed, has `resume` called when it next opens; it is asked for once at a time. */
  waitIfClosed(): void {
    if (this.#waiting || this.isOpen || this.subscriber.closed) return;
    this.#waiting = true;
    if (this.#stop === undefined) this.subscriber.add(() => this.#stop!());
    this.#stop = this.gate!.onceOpen(() => {
      this.#waiting = false;
      try {
        withGate(this.gate, this.resume);
      } catch (error) {
        this.subscriber.error(error);
      }
    });
  }
}
