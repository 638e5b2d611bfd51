import type { Observable } from 'rxjs';
import { fromRowBatches } from './fromRowBatches.js';
import { jsonLines } from './internal/jsonLines.js';
import { filePath, readBytes } from './reading/readBytes.js';
import { RowTally } from './internal/rowTally.js';
import type { RowOptions } from './RowOptions.js';

/**
 * The rows of a JSONL file, in order, as fast as demand allows.
 *
 * ```ts
 * fromJsonl<Row>('rows.jsonl.gz', { onBadRow: 'skip', onEvent: console.log })
 * ```
 * Files ending in `.gz` (or `.zst`, if Node supports it) are decompressed. Blank lines and a byte-order mark are passed over.
 * A line that is not valid JSON ends the stream with a {@link BadRowError} naming file and line, or is skipped, counted and
 * reported. A file that cannot be read is a {@link SourceError}. The type argument is a promise of yours: give `decode`
 * to have rows checked. Completes after the last row; unsubscribing closes the file. Pauses while the bounded operator
 * downstream is full, and holds one chunk of 256 KiB (and one line, if that is longer).
 */
export function fromJsonl<T = unknown>(path: string | URL, options: RowOptions<T> = {}): Observable<T> {
  return fromRowBatches(
    (signal) => {
      const file = filePath(path);
      const tally = new RowTally<T>(file, options);
      return jsonLines(readBytes(file, signal, tally), tally);
    },
    { name: 'fromJsonl' },
  );
}
