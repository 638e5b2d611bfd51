import type { Change } from './changes.js';
import { packRows } from './packRows.js';
import type { Series } from './Series.js';

export type Rows = Extract<Change, { readonly kind: 'rows' }>;

const ROWS_A_BLOCK = 2000;

/** The rows of a run in packed blocks. A block that is full is made once, for all pages that will ever come. */
export class RowBlocks {
  readonly #full: Rows[] = [];

  constructor(
    readonly run: string,
    readonly series: Series,
  ) {}

  /** All rows as they are now. They are packed as they are asked for; what happens to the series meanwhile is not in them. */
  changes(): Iterable<Rows> {
    const { series } = this;
    this.#forgetTouched();
    const made = [...this.#full];
    return this.#blocks(made, series.copy(made.length * ROWS_A_BLOCK), series.edits);
  }

  /** Makes the blocks that have become full. */
  prepare(): void {
    if (this.series.length < (this.#full.length + 1) * ROWS_A_BLOCK) return;
    this.#forgetTouched();
    for (let from = this.#full.length * ROWS_A_BLOCK; from + ROWS_A_BLOCK <= this.series.length; from += ROWS_A_BLOCK) {
      this.#full.push(this.#pack(this.series, from, from + ROWS_A_BLOCK));
    }
  }

  *#blocks(made: readonly Rows[], rest: Series, edits: number): Iterable<Rows> {
    yield* made;
    let number = made.length;
    for (let from = 0; from < rest.length; from += ROWS_A_BLOCK) {
      const to = Math.min(rest.length, from + ROWS_A_BLOCK);
      const block = this.#pack(rest, from, to);
      const full = to - from === ROWS_A_BLOCK;
      // It may have been made meanwhile, or be out of date already.
      if (full && number++ === this.#full.length && edits === this.series.edits) this.#full.push(block);
      yield block;
    }
  }

  #pack(series: Series, from: number, to: number): Rows {
    return { kind: 'rows', run: this.run, ...packRows(series, from, to) };
  }

  #forgetTouched(): void {
    const touched = Math.floor(this.series.takeTouched() / ROWS_A_BLOCK);
    if (touched < this.#full.length) this.#full.length = touched;
  }
}
