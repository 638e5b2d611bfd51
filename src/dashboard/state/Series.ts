import { checkAtLeast } from '../../support/checks.js';
import { lowerBound } from './align.js';

/** A row of numbers with its place on the x axis. */
export interface Row {
  /** The step's number. */
  readonly index: number;
  /** Its metrics by name. */
  readonly values: Readonly<Record<string, number>>;
}

const FIRST_SIZE = 256;

/**
 * Columns of numbers over a growing index: what a curve is drawn from.
 *
 * A row at or before the last index takes the place of what stood there and after, as a run that was resumed does.
 * Beyond `cap` rows every other row of the older half is dropped, so that the whole run stays in sight and memory
 * stays bounded.
 */
export class Series {
  #length = 0;
  #size = FIRST_SIZE;
  #index = new Float64Array(FIRST_SIZE);
  readonly #columns = new Map<string, Float64Array>();

  constructor(
    /** How many rows are kept at most. Default 200,000. */
    readonly cap = 200_000,
  ) {
    checkAtLeast({ cap }, 4);
  }

  /** How many rows there are. */
  get length(): number {
    return this.#length;
  }
  /** The metrics' names. */
  get names(): readonly string[] {
    return [...this.#columns.keys()];
  }
  /** The newest step's number. */
  get lastIndex(): number | undefined {
    return this.#length === 0 ? undefined : this.#index[this.#length - 1];
  }
  /** The places on the x axis, ascending. A view: good until the next change. */
  get index(): Float64Array {
    return this.#index.subarray(0, this.#length);
  }

  /** A column; NaN if a row has no such value. A view: good until the next change. */
  column(name: string): Float64Array | undefined {
    return this.#columns.get(name)?.subarray(0, this.#length);
  }

  /** The newest value of a column that is a number. */
  last(name: string): number | undefined {
    const column = this.column(name);
    for (let row = this.#length - 1; column !== undefined && row >= 0; row--) {
      if (!Number.isNaN(column[row]!)) return column[row];
    }
    return undefined;
  }

  /** Adds a row. If its step is not newer than the last one, it replaces all rows from that step on. */
  append({ index, values }: Row): void {
    if (!Number.isFinite(index)) return;
    if (this.#length > 0 && index <= this.#index[this.#length - 1]!) {
      this.#length = this.lowerBound(index);
    }
    if (this.#length === this.cap) this.#thin();
    if (this.#length === this.#size) this.#grow();
    const row = this.#length++;
    this.#index[row] = index;
    for (const column of this.#columns.values()) column[row] = NaN;
    for (const name of Object.keys(values)) this.#columnNamed(name)[row] = values[name]!;
  }

  /** Appends many rows, given by column; null if a row has no such value. */
  appendAll(index: ArrayLike<number>, columns: Readonly<Record<string, ArrayLike<number | null>>>): void {
    const { length } = index;
    let rises = true;
    for (let row = 0, last = this.lastIndex ?? -Infinity; row < length && rises; last = index[row++]!) {
      rises = index[row]! > last && index[row]! < Infinity;
    }
    // The most frequent case: all rows are newer than the last one, and there is room.
    if (length > 1 && rises && this.#length + length <= this.cap) {
      const start = this.#length;
      while (this.#size < start + length) this.#grow();
      this.#length += length;
      this.#index.set(index, start);
      for (const column of this.#columns.values()) column.fill(NaN, start, this.#length);
      for (const [name, values] of Object.entries(columns)) {
        const column = this.#columnNamed(name);
        if (values instanceof Float64Array) column.set(values, start);
        else for (let row = 0; row < length; row++) column[start + row] = values[row] ?? NaN;
      }
      return;
    }
    const entries = Object.entries(columns);
    for (let row = 0; row < length; row++) {
      const values = Object.fromEntries(entries.map(([name, column]) => [name, column[row] ?? NaN]));
      this.append({ index: index[row]!, values });
    }
  }

  /** Sets or adds to values of a row that is there; returns whether it was. */
  set(index: number, values: Readonly<Record<string, number>>, how: 'put' | 'add' = 'put'): boolean {
    const row = this.lowerBound(index);
    if (row >= this.#length || this.#index[row] !== index) return false;
    for (const name of Object.keys(values)) {
      const column = this.#columnNamed(name);
      const before = column[row]!;
      column[row] = how === 'add' && !Number.isNaN(before) ? before + values[name]! : values[name]!;
    }
    return true;
  }

  /** The first row at or after a place on the x axis; `length` if there is none. */
  lowerBound(index: number): number {
    return lowerBound(this.index, index);
  }

  /** The same rows, apart from this one's future. */
  copy(): Series {
    const copy = new Series(this.cap);
    copy.#length = this.#length;
    copy.#size = Math.max(FIRST_SIZE, copy.#length);
    const sized = (column: Float64Array) => {
      const same = new Float64Array(copy.#size);
      same.set(column.subarray(0, this.#length));
      return same;
    };
    copy.#index = sized(this.#index);
    for (const [name, column] of this.#columns) copy.#columns.set(name, sized(column));
    return copy;
  }

  /** Forgets everything. */
  clear(): void {
    this.#length = 0;
    this.#columns.clear();
  }

  #columnNamed(name: string): Float64Array {
    const there = this.#columns.get(name);
    if (there !== undefined) return there;
    const column = new Float64Array(this.#size).fill(NaN);
    this.#columns.set(name, column);
    return column;
  }

  #grow(): void {
    this.#size = Math.min(this.cap, this.#size * 2);
    const larger = (column: Float64Array) => {
      const grown = new Float64Array(this.#size);
      grown.set(column.subarray(0, this.#length));
      return grown;
    };
    this.#index = larger(this.#index);
    for (const [name, column] of this.#columns) this.#columns.set(name, larger(column));
  }

  #thin(): void {
    const half = this.#length >> 1;
    const kept = (half + 1) >> 1;
    for (const column of [this.#index, ...this.#columns.values()]) {
      for (let row = 1; row < kept; row++) column[row] = column[row * 2]!;
      column.copyWithin(kept, half, this.#length);
    }
    this.#length = kept + this.#length - half;
  }
}
