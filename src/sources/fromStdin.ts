import type { Readable } from 'node:stream';
import type { Observable } from 'rxjs';
import { fromRowBatches } from './fromRowBatches.js';
import { jsonLines } from './internal/jsonLines.js';
import { readStream } from './reading/readStream.js';
import { RowTally } from './internal/rowTally.js';
import type { RowOptions } from './RowOptions.js';
import { SourceError } from './SourceError.js';

/** Options of `fromStdin`. */
export interface StdinOptions<T> extends RowOptions<T> {
  /** What to read instead of standard input. */
  readonly input?: Readable;
}

/**
 * JSONL from standard input, in order, as fast as demand allows: `generate | node train.js`.
 *
 * Like {@link fromJsonl}, with 'stdin' for the file's name. While it is paused the writer at the other end of the pipe
 * is, too. Completes with the end of the input. Unsubscribing closes the input. It can be read
 * only once: a second subscribe, as for a second epoch, is a {@link SourceError}.
 */
export function fromStdin<T = unknown>(options: StdinOptions<T> = {}): Observable<T> {
  return fromRowBatches(
    (signal) => {
      const { input = process.stdin } = options;
      if (taken.has(input))
        throw new SourceError(
          'stdin',
          'was read already, and can be read only once. For several epochs put it into a file',
        );
      taken.add(input);
      const tally = new RowTally<T>('stdin', options);
      return jsonLines(readStream('stdin', input, signal, tally), tally);
    },
    { name: 'fromStdin' },
  );
}

const taken = new WeakSet<Readable>();
