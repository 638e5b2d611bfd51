import { checkAtLeast } from '../../support/checks.js';

/** The last `cap` values, in order; fewer if they are heavy: together they weigh `limit` at most, unless it is one. */
export class Ring<T> {
  #values: T[] = [];
  #start = 0;
  #weight = 0;

  constructor(
    /** How many values are kept at most. */
    readonly cap: number,
    /** How much a value counts towards `limit`. Default 0. */
    readonly weigh: (value: T) => number = () => 0,
    /** The largest total weight. Default: no limit. */
    readonly limit = Infinity,
  ) {
    checkAtLeast({ cap }, 1);
  }

  /** How many values there are. */
  get length(): number {
    return this.#values.length - this.#start;
  }
  /** The newest value. */
  get last(): T | undefined {
    return this.#values.at(-1);
  }

  /** Adds a value, and drops the oldest ones above the limits. */
  push(value: T): void {
    this.#values.push(value);
    this.#weight += this.weigh(value);
    while (this.length > this.cap || (this.#weight > this.limit && this.length > 1)) {
      this.#weight -= this.weigh(this.#values[this.#start]!);
      // Forgotten at once, though its place is cut off later.
      this.#values[this.#start++] = undefined as T;
    }
    // Cutting the front off costs its length: done once in a while, it costs nothing.
    if (this.#start > this.cap) {
      this.#values = this.#values.slice(this.#start);
      this.#start = 0;
    }
  }

  /** The value at a place, counted from the oldest. */
  at(place: number): T | undefined {
    return place < 0 ? undefined : this.#values[this.#start + place];
  }

  /** All values, the oldest first. */
  toArray(): T[] {
    return this.#values.slice(this.#start);
  }

  /** Replaces the newest value that matches, if one does. */
  replaceLast(matches: (value: T) => boolean, replace: (value: T) => T): void {
    for (let place = this.#values.length - 1; place >= this.#start; place--) {
      const value = this.#values[place]!;
      if (!matches(value)) continue;
      this.#values[place] = replace(value);
      return;
    }
  }

  /** Forgets everything. */
  clear(): void {
    this.#values = [];
    this.#start = 0;
    this.#weight = 0;
  }
}
