import type { Readable } from 'node:stream';
import type { Observable } from 'rxjs';
import { fromRowBatches } from './fromRowBatches.js';
import { jsonLines } from './internal/jsonLines.js';
import { RowTally } from './internal/rowTally.js';
import type { RowOptions } from './RowOptions.js';
import { SourceError } from './SourceError.js';

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
      return jsonLines(read(input, signal, tally), tally);
    },
    { name: 'fromStdin' },
  );
}

const taken = new WeakSet<Readable>();

async function* read(input: Readable, signal: AbortSignal, count: { bytes: number }): AsyncGenerator<Buffer> {
  // Waiting for a terminal can take for ever: unsubscribing must not have to wait for the next line.
  const stop = () => input.destroy();
  signal.addEventListener('abort', stop, { once: true });
  try {
    for await (const chunk of input as AsyncIterable<Buffer | string>) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
      count.bytes += bytes.length;
      yield bytes;
    }
  } catch (cause) {
    throw new SourceError('stdin', cause instanceof Error ? cause.message : String(cause), { cause });
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
