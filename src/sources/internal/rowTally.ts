import { constants } from 'node:buffer';
import { messageOf } from '../../support/messageOf.js';
import { checkPositive } from '../../support/checks.js';
import type { RowOptions } from '../RowOptions.js';
import { BadRowError } from '../SourceError.js';
import { setOrigin } from '../../support/rows/rowOrigin.js';

/** Counts rows of one file, decides about bad ones, and reports. */
export class RowTally<T> {
  bytes = 0;
  totalBytes: number | undefined;
  readonly maxRowBytes: number;
  #rows = 0;
  #badRows = 0;
  #untrainedRows = 0;
  readonly #unused = new Map<string, number>();

  constructor(
    readonly file: string,
    readonly options: RowOptions<T>,
  ) {
    const { maxRowBytes = constants.MAX_STRING_LENGTH } = options;
    checkPositive({ maxRowBytes });
    this.maxRowBytes = Math.min(maxRowBytes, constants.MAX_STRING_LENGTH);
  }

  /** A row that was longer than `maxRowBytes`. */
  tooLong(line: number): void {
    this.skip(line, `longer than ${this.maxRowBytes} bytes`);
  }

  /** The row `parse` returns, decoded, in a one-element array; empty for a bad row that is skipped. */
  take(line: number, parse: () => unknown): readonly T[] {
    const { decode } = this.options;
    try {
      const row = parse();
      const decoded = decode === undefined ? (row as T) : this.#decode(decode, row);
      this.#rows++;
      setOrigin(decoded, {
        file: this.file,
        line,
        skip: this.#skipLater,
        untrained: this.#untrained,
        unused: this.#tellUnused,
      });
      return [decoded];
    } catch (cause) {
      this.skip(line, messageOf(cause), cause);
      return [];
    }
  }

  /** Counts and reports a bad row, or throws it. */
  skip(line: number, reason: string, cause?: unknown): void {
    const { onBadRow = 'error', onEvent } = this.options;
    if (onBadRow === 'error') throw new BadRowError(this.file, line, reason, { cause });
    this.#badRows++;
    onEvent?.({ type: 'row-skipped', file: this.file, line, reason });
  }

  #decode(decode: NonNullable<RowOptions<T>['decode']>, row: unknown): T {
    let fields: Set<string> | undefined;
    const decoded = decode(row, (field) => (fields ??= new Set()).add(field));
    // A row that is refused has told nothing.
    fields?.forEach((field) => this.#unused.set(field, (this.#unused.get(field) ?? 0) + 1));
    return decoded;
  }

  /** A row that was handed on and turned out to be bad further down. */
  readonly #skipLater = (line: number, reason: string, cause: unknown): void => {
    this.skip(line, reason, cause);
    this.#rows--;
  };

  readonly #untrained = (line: number, reason: string): void => {
    this.#untrainedRows++;
    this.options.onEvent?.({ type: 'row-untrained', file: this.file, line, reason });
  };

  readonly #tellUnused = (field: string, rows: number): void =>
    this.options.onEvent?.({ type: 'field-unused', file: this.file, field, rows });

  report(done: boolean): void {
    if (done) {
      for (const [field, rows] of this.#unused) this.#tellUnused(field, rows);
    }
    const { file, bytes, totalBytes } = this;
    this.options.onEvent?.({
      type: 'source-progress',
      file,
      bytes,
      ...(totalBytes === undefined ? {} : { totalBytes }),
      rows: this.#rows,
      badRows: this.#badRows,
      untrainedRows: this.#untrainedRows,
      done,
    });
  }
}
