/** First in, first out, without the cost of `Array.shift` on long arrays. */
export class Queue<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  /** The oldest item; the queue must not be empty. */
  shift(): T {
    // The usual case. Emptying an array by its length gives its memory back, and the next push asks for it again.
    if (this.#items.length === 1) return this.#items.pop() as T;
    const item = this.#items[this.#head] as T;
    this.#items[this.#head] = undefined;
    this.#head++;
    if (this.#head === this.#items.length) {
      this.#items.length = 0;
      this.#head = 0;
    } else if (this.#head >= 1024 && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }
}
