/**
 * Ends a text at the first of some strings, however it is divided when it arrives. A server stops at token ids or at
 * strings, never at both, so a caller's own strings are found here. Holds back at most one character less than the
 * longest string.
 */
export class StopText {
  readonly #stops: readonly string[];
  readonly #longest: number;
  #held = '';
  #stop: string | undefined;

  constructor(stops: readonly string[] = []) {
    this.#stops = stops.filter((stop) => stop !== '');
    this.#longest = Math.max(0, ...this.#stops.map(({ length }) => length));
  }

  /** The string that was found, if one was. */
  get stop(): string | undefined {
    return this.#stop;
  }

  /** More text has arrived: the part of it that is certain. */
  push(text: string): string {
    if (this.#stop !== undefined) return '';
    if (this.#longest === 0) return text;
    this.#held += text;
    const { at, stop } = this.#first();
    if (stop !== undefined) {
      this.#stop = stop;
      const before = this.#held.slice(0, at);
      this.#held = '';
      return before;
    }
    const certain = Math.max(0, this.#held.length - this.#longest + 1);
    const shown = this.#held.slice(0, certain);
    this.#held = this.#held.slice(certain);
    return shown;
  }

  /** No more text comes: what was held back. */
  finish(): string {
    const rest = this.#held;
    this.#held = '';
    return rest;
  }

  #first(): { readonly at: number; readonly stop: string | undefined } {
    let at = Infinity;
    let found: string | undefined;
    for (const stop of this.#stops) {
      const index = this.#held.indexOf(stop);
      if (index >= 0 && index < at) {
        at = index;
        found = stop;
      }
    }
    return { at, stop: found };
  }
}
