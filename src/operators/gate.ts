import { readGate, swapGate } from './internal/gateContext.js';

/**
 * Demand, as seen from upstream: open while a bounded operator has room, closed while it is full.
 *
 * A bounded operator owns a gate and subscribes to its source inside {@link withGate}; a source reads
 * {@link currentGate} when it is subscribed to, looks at `isOpen` before each value, and waits with `onceOpen`.
 * A gate with a parent is open only while the parent is open too.
 *
 * @see docs/backpressure.md
 */
export class Gate {
  readonly #parent: Gate | undefined;
  #open = true;
  #resuming = false;
  #waiting: (() => void)[] | undefined;

  constructor(parent?: Gate) {
    this.#parent = parent;
  }

  get isOpen(): boolean {
    return this.#open && (this.#parent === undefined || this.#parent.isOpen);
  }

  /**
   * Calls `resume` once: now if the gate is open, else when it next opens. Those who wait are served first come,
   * first served, and only while the gate stays open. Returns a function that stops the waiting.
   */
  onceOpen(resume: () => void): () => void {
    let stop = () => {};
    if (this.#open) {
      if (this.#parent === undefined || this.#parent.isOpen) resume();
      // The gate itself may have closed by the time its parent opens.
      else stop = this.#parent.onceOpen(() => (stop = this.onceOpen(resume)));
    } else {
      this.#waiting ??= [];
      this.#waiting.push(resume);
      stop = () => {
        const place = this.#waiting?.indexOf(resume) ?? -1;
        if (place >= 0) this.#waiting?.splice(place, 1);
      };
    }
    return () => stop();
  }

  /** Opens or closes the gate. Opening it resumes those who wait, before this call returns. */
  set(open: boolean): void {
    this.#open = open;
    if (!open || this.#resuming || this.#waiting === undefined) return;
    this.#resuming = true;
    try {
      while (this.#open && this.#waiting.length > 0) {
        const resume = this.#waiting.shift()!;
        // The parent may be closed: then wait there.
        this.onceOpen(resume);
      }
    } finally {
      this.#resuming = false;
    }
  }
}

/** The gate of the nearest bounded operator downstream, where one is known; read it synchronously, on subscribe. */
export function currentGate(): Gate | undefined {
  return readGate();
}

/** Runs `body` with `gate` as the current one: what is subscribed to inside, synchronously, finds it. */
export function withGate<R>(gate: Gate | undefined, body: () => R): R {
  const previous = swapGate(gate);
  try {
    return body();
  } finally {
    swapGate(previous);
  }
}
