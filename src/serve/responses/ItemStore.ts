/** An item of a response as it was sent: a message, reasoning, or a call. */
export type Item = Readonly<Record<string, unknown>>;

const MOST_CHARS = 16 * 1024 * 1024;

/**
 * What was said lately, by id. Some clients do not send an answer back but name it (`item_reference`). Keeps the newest
 * 16 million characters.
 */
export class ItemStore {
  readonly #items = new Map<string, { readonly item: Item; readonly chars: number }>();
  #chars = 0;

  add(items: readonly Item[]): void {
    for (const item of items) {
      const chars = JSON.stringify(item).length;
      this.#items.set(String(item['id']), { item, chars });
      this.#chars += chars;
    }
    for (const [id, { chars }] of this.#items) {
      if (this.#chars <= MOST_CHARS) break;
      this.#items.delete(id);
      this.#chars -= chars;
    }
  }

  find(id: string): Item | undefined {
    return this.#items.get(id)?.item;
  }
}
