/** A binary heap that gives back the smallest number first. */
export class NumberHeap {
  readonly #items: number[] = [];

  get length(): number {
    return this.#items.length;
  }

  push(item: number): void {
    const items = this.#items;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (items[parent]! <= item) break;
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = item;
  }

  /** Takes the smallest out. The heap must not be empty. */
  pop(): number {
    const items = this.#items;
    const smallest = items[0]!;
    const item = items.pop()!;
    const { length } = items;
    if (length === 0) return smallest;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      if (child + 1 < length && items[child + 1]! < items[child]!) child++;
      if (items[child]! >= item) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = item;
    return smallest;
  }
}
