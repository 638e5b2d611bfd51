/** What a file source tells while it reads, for progress bars and logs. */
export type SourceEvent =
  | {
      readonly type: 'source-progress';
      readonly file: string;
      /** Bytes read so far, as they lie on disk: compressed ones for a compressed file. */
      readonly bytes: number;
      /** Absent where it is not known, as for standard input. */
      readonly totalBytes?: number;
      /** Rows handed on so far. */
      readonly rows: number;
      readonly badRows: number;
      readonly done: boolean;
    }
  | { readonly type: 'row-skipped'; readonly file: string; readonly line: number; readonly reason: string };

/** Options that every source of rows takes. */
export interface RowOptions<T> {
  /** Turns a parsed row into what the stream carries; a throw makes it a bad row. Default: the row as it is. */
  readonly decode?: (row: unknown) => T;
  /** What a bad row does: 'error' (default) ends the stream with a {@link BadRowError}, 'skip' counts and reports it. */
  readonly onBadRow?: 'error' | 'skip';
  /**
   * The longest row that is read, in bytes, for the sources that read text; > 0. A longer one is a bad row, and is not held in memory.
   * Default 536 870 888, the longest text that Node can hold.
   */
  readonly maxRowBytes?: number;
  /** Called with progress about every 256 KiB and at the end, and for every row skipped. */
  readonly onEvent?: (event: SourceEvent) => void;
}
