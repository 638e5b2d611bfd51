/** Where a row came from, for operators that find out later that it is bad. */
export interface RowOrigin {
  readonly file: string;
  readonly line: number;
  /** Counts and reports it as a bad row, or throws it as one, as the source was told to. */
  readonly skip: (line: number, reason: string, cause: unknown) => void;
  /** Counts and reports it as one of which nothing is trained on. */
  readonly untrained: (line: number, reason: string) => void;
  /** Reports a field that a later operator left out, and how many rows of the file have it. */
  readonly unused: (field: string, rows: number) => void;
}

/** Weakly: a row is remembered as long as anybody holds it. */
const origins = new WeakMap<object, RowOrigin>();

/** Rows that are no objects (a number, a text) are not followed. */
export function setOrigin(row: unknown, origin: RowOrigin): void {
  if (typeof row === 'object' && row !== null) origins.set(row, origin);
}

export function originOf(row: unknown): RowOrigin | undefined {
  return typeof row === 'object' && row !== null ? origins.get(row) : undefined;
}
