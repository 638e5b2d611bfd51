import type { FieldEvent, RowEvent } from '../support/rows/RowEvent.js';

export type { FieldEvent, RowEvent };

/** What a file source tells while it reads, for progress bars and logs. */
export type SourceEvent =
  | {
      /** How far a file has been read. */
      readonly type: 'source-progress';
      /** The file's path. */
      readonly file: string;
      /** Bytes read so far, as they lie on disk: compressed ones for a compressed file. */
      readonly bytes: number;
      /** Absent if it is not known, as for standard input. */
      readonly totalBytes?: number;
      /** Rows handed on so far. */
      readonly rows: number;
      /** Rows skipped so far, those among them that the renderer could not write. */
      readonly badRows: number;
      /** Rows so far of which nothing is trained on, where `toDatums` reads them. */
      readonly untrainedRows: number;
      /** Whether the file was read to its end. */
      readonly done: boolean;
    }
  | RowEvent
  | FieldEvent;

/** Options that every source of rows takes. */
export interface RowOptions<T> {
  /**
   * Turns a parsed row into what the stream carries; a throw makes it a bad row. Calls `unused` with the name of a field that it does not read: such
   * are counted, and told once. Default: the row as it is.
   */
  readonly decode?: (row: unknown, unused: (field: string) => void) => T;
  /** What a bad row does: 'error' (default) ends the stream with a {@link BadRowError}, 'skip' counts and reports it. */
  readonly onBadRow?: 'error' | 'skip';
  /**
   * The longest row that is read, in bytes, for the sources that read text; > 0. A longer one is a bad row, and is not held in memory.
   * Default 536 870 888, the longest text that Node can hold.
   */
  readonly maxRowBytes?: number;
  /** Called with progress about every 256 KiB and at the end, for every row skipped, and for every field that nothing reads. */
  readonly onEvent?: (event: SourceEvent) => void;
}
