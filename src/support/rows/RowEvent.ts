/** A field that nothing reads, or that the renderer leaves out; told once, at the end. */
export interface FieldEvent {
  /** A field of the rows is not used for anything. */
  readonly type: 'field-unused';
  /** Its file; 'conversation' where it came from none. */
  readonly file: string;
  /** Its name: `score`, or `messages[].annotations` for one inside messages. */
  readonly field: string;
  /** How many rows have it. */
  readonly rows: number;
}

/** What became of one row that is not trained on. */
export interface RowEvent {
  /** Skipped because it is bad, or left out because no token of it carries loss. */
  readonly type: 'row-skipped' | 'row-untrained';
  /** Its file; 'conversation' where it came from none. */
  readonly file: string;
  /** The line in the file, or the number of the row, from 1. */
  readonly line: number;
  /** What is wrong with the row. */
  readonly reason: string;
}
