import { fromEvent, map, merge, type Observable, Subject } from 'rxjs';
import { byId, replaceIfNew } from './dom.js';
import { whole } from './format.js';

export interface PagesOptions<T> {
  /** How many values are on a page. */
  readonly size: number;
  /** What follows the number of values: ` groups`. */
  readonly unit: string;
  /** Emits when another question is asked. */
  readonly asked: Observable<unknown>;
  /** Two values with the same key look the same. */
  readonly keyOf: (value: T) => string;
  readonly article: (value: T, key: string) => HTMLElement;
}

/** A list of articles, a page at a time, which can be held still. Its elements in the page begin with `name`. */
export class Pages<T> {
  readonly changes = new Subject<void>();
  readonly list: HTMLElement;
  readonly #options: PagesOptions<T>;
  readonly #hold: HTMLInputElement;
  readonly #count: HTMLElement;
  readonly #back: HTMLButtonElement;
  readonly #next: HTMLButtonElement;
  #page = 0;
  #seen = '';
  #held: readonly T[] | undefined;

  constructor(name: string, options: PagesOptions<T>) {
    this.#options = options;
    this.list = byId(`${name}-list`);
    this.#hold = byId(`${name}-hold`);
    this.#count = byId(`${name}-count`);
    this.#back = byId(`${name}-back`);
    this.#next = byId(`${name}-next`);
    merge(
      merge(options.asked, fromEvent(this.#hold, 'input')).pipe(map(() => -Infinity)),
      fromEvent(this.#back, 'click').pipe(map(() => -1)),
      fromEvent(this.#next, 'click').pipe(map(() => 1)),
    ).subscribe((by) => {
      this.#page = Math.max(0, this.#page + by);
      this.#seen = '';
      this.changes.next();
    });
  }

  /** Shows a page of what `find` finds. Thousands of values are looked through only if `version` is new or something else is asked. */
  render(version: string, values: () => readonly T[], find: (all: readonly T[]) => readonly T[]): void {
    if (version === this.#seen || (this.#hold.checked && this.#seen !== '')) return;
    this.#seen = version;
    this.#held = this.#hold.checked ? (this.#held ?? values()) : undefined;
    const all = this.#held ?? values();
    const found = find(all);
    const { size, unit, keyOf, article } = this.#options;
    this.#page = Math.max(0, Math.min(this.#page, Math.ceil(found.length / size) - 1));
    const first = this.#page * size;
    const page = found.slice(first, first + size);
    this.#back.hidden = this.#next.hidden = found.length <= size;
    this.#back.disabled = this.#page === 0;
    this.#next.disabled = first + size >= found.length;
    const among = found.length < all.length ? ` found in ${whole(all.length)}` : '';
    this.#count.textContent =
      all.length === 0
        ? `No${unit} yet.`
        : found.length === 0
          ? `None of ${whole(all.length)}${unit} matches.`
          : `${whole(first + 1)}–${whole(first + page.length)} of ${whole(found.length)}${unit}${among}`;
    const there = new Map(Array.from(this.list.children, (each) => [each.getAttribute('data-key'), each]));
    const keys = page.map(keyOf);
    // What is on the page already stays the element it is: focus, scrolling and open texts stay with it.
    replaceIfNew(this.list, keys.join('\n'), () =>
      page.map((value, place) => there.get(keys[place]!) ?? article(value, keys[place]!)),
    );
  }
}
