const WORTH_MOVING = 1024;

/** First in, first out. `shift` of a long array moves all that wait behind; here they are moved once in a while. */
export class Line<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get first(): T | undefined {
    return this.#items[this.#head];
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Removes the first. */
  shift(): void {
    this.#items[this.#head++] = undefined;
    if (this.#head < WORTH_MOVING || this.#head * 2 < this.#items.length) return;
    this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }
}
