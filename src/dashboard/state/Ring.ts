/** The last `cap` values, in order. */
export class Ring<T> {
  #values: T[] = [];
  #start = 0;

  constructor(readonly cap: number) {
    if (!(cap >= 1)) throw new RangeError(`cap must be >= 1, got ${cap}`);
  }

  get length(): number {
    return this.#values.length - this.#start;
  }
  get last(): T | undefined {
    return this.#values.at(-1);
  }

  push(value: T): void {
    this.#values.push(value);
    if (this.length > this.cap) this.#start++;
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

  clear(): void {
    this.#values = [];
    this.#start = 0;
  }
}
