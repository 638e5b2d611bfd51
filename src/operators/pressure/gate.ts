import { Observable } from 'rxjs';

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
  #openings = 0;
  #waiting: Waiter[] | undefined;

  constructor(parent?: Gate) {
    this.#parent = parent;
  }

  /** Whether values pass at this moment: this gate and every gate above it is open. */
  get isOpen(): boolean {
    return this.#open && (this.#parent === undefined || this.#parent.isOpen);
  }

  /** How often it, or a parent, has opened so far: where that has not changed, an open gate has been open all along. */
  get openings(): number {
    return this.#openings + (this.#parent?.openings ?? 0);
  }

  /**
   * Calls `resume` once: now if the gate is open, else when it next opens. Those who wait are served first come,
   * first served, and only while the gate stays open. Returns a function that stops the waiting.
   */
  onceOpen(resume: () => void): () => void {
    const waiter: Waiter = { resume, leave: undefined };
    this.#serve(waiter);
    return () => waiter.leave?.();
  }

  /** Opens or closes the gate. Opening it resumes those who wait, before this call returns. */
  set(open: boolean): void {
    if (open && !this.#open) this.#openings++;
    this.#open = open;
    if (!open || this.#resuming || this.#waiting === undefined) return;
    this.#resuming = true;
    try {
      while (this.#open && this.#waiting.length > 0) this.#serve(this.#waiting.shift()!);
    } finally {
      this.#resuming = false;
    }
  }

  /** Calls one who waits, or lets it wait: here, or where the parent is closed, there. */
  #serve(waiter: Waiter): void {
    if (!this.#open) {
      const waiting = (this.#waiting ??= []);
      waiting.push(waiter);
      waiter.leave = () => {
        const place = waiting.indexOf(waiter);
        if (place >= 0) waiting.splice(place, 1);
      };
    } else if (this.#parent?.isOpen === false) {
      // The gate itself may have closed by the time its parent opens.
      waiter.leave = this.#parent.onceOpen(() => this.#serve(waiter));
    } else {
      waiter.leave = undefined;
      waiter.resume();
    }
  }
}

interface Waiter {
  readonly resume: () => void;
  leave: (() => void) | undefined;
}

// Subscribing travels upstream synchronously, so one variable is enough to hand a gate to the source.
let current: Gate | undefined;

/** The gate of the nearest bounded operator downstream, where one is known; read it synchronously, on subscribe. */
export function currentGate(): Gate | undefined {
  return current;
}

/** @internal Makes `gate` the current one and returns the one before, to be put back in a `finally`. */
export function swapGate(gate: Gate | undefined): Gate | undefined {
  const previous = current;
  current = gate;
  return previous;
}

/** Runs `body` with `gate` as the current one: what is subscribed to inside, synchronously, finds it. */
export function withGate<R>(gate: Gate | undefined, body: () => R): R {
  const previous = swapGate(gate);
  try {
    return body();
  } finally {
    current = previous;
  }
}

/** @internal The source, subscribed to under `gate`: for operators that subscribe again after a wait. */
export function underGate<T>(gate: Gate | undefined, source: Observable<T>): Observable<T> {
  if (gate === undefined && current === undefined) return source;
  return new Observable((subscriber) => withGate(gate, () => source.subscribe(subscriber)));
}
