import type { Subscriber } from 'rxjs';
import { type Gate, withGate } from '../../operators/pressure/gate.js';

/**
 * Walks through rows, one iterable after the other, and hands each on while the gate is open. Everything is emitted under
 * the gate, so that what starts because of a row, or because of the end, finds it too.
 */
export class RowWalk<T> {
  #rows: Iterator<T> | undefined;
  #walking = false;
  #stopWaiting: (() => void) | undefined;

  constructor(
    private readonly subscriber: Subscriber<T>,
    private readonly gate: Gate | undefined,
    /** Called, under the gate, when all rows of an iterable are out. */
    private readonly done: () => void,
  ) {
    subscriber.add(() => {
      this.#stopWaiting?.();
      // A subscriber may unsubscribe on a row while the rows are in use; they are released right after.
      if (!this.#walking) this.#putAway();
    });
  }

  walk(rows: Iterable<T>): void {
    try {
      if (typeof (rows as Partial<Iterable<T>> | null | undefined)?.[Symbol.iterator] !== 'function') {
        throw new TypeError(`a batch of rows must be iterable, got ${rows === null ? 'null' : typeof rows}`);
      }
      this.#rows = rows[Symbol.iterator]();
    } catch (error) {
      return withGate(this.gate, () => this.subscriber.error(error));
    }
    withGate(this.gate, () => this.#emit());
  }

  #emit(): void {
    const { subscriber, gate } = this;
    this.#walking = true;
    try {
      while (this.#rows !== undefined && !subscriber.closed) {
        if (gate?.isOpen === false) {
          this.#stopWaiting = gate.onceOpen(() => withGate(gate, () => this.#emit()));
          return;
        }
        const row = this.#rows.next();
        if (row.done === true) this.#rows = undefined;
        else subscriber.next(row.value);
      }
    } catch (error) {
      // An iterator that has thrown is over.
      this.#rows = undefined;
      subscriber.error(error);
    } finally {
      this.#walking = false;
    }
    if (subscriber.closed) this.#putAway();
    else this.done();
  }

  /** Returns an iterator that nobody will walk through to its end. */
  #putAway(): void {
    const left = this.#rows;
    this.#rows = undefined;
    try {
      left?.return?.();
    } catch {
      // Nobody is left to tell.
    }
  }
}
