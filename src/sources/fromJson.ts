import { isUtf8 } from 'node:buffer';
import type { Observable } from 'rxjs';
import { fromRowBatches } from './fromRowBatches.js';
import { type JsonElement, JsonElementSplitter } from './internal/jsonElements.js';
import { filePath, readBytes } from './reading/readBytes.js';
import { RowTally } from './internal/rowTally.js';
import type { RowOptions } from './RowOptions.js';

/**
 * The elements of a file that is one JSON array, in order, as fast as demand allows, without reading it whole.
 *
 * ```ts
 * fromJson<Row>('alpaca_data.json')
 * ```
 * Like {@link fromJsonl} in all else. An element that is not JSON is a bad row, named by the line it starts on; a file
 * that is no array, or whose array does not end, is a {@link SourceError}. Holds one chunk and one element.
 */
export function fromJson<T = unknown>(path: string | URL, options: RowOptions<T> = {}): Observable<T> {
  return fromRowBatches((signal) => elements(filePath(path), signal, options), { name: 'fromJson' });
}

async function* elements<T>(file: string, signal: AbortSignal, options: RowOptions<T>): AsyncGenerator<Iterable<T>> {
  const tally = new RowTally<T>(file, options);
  const splitter = new JsonElementSplitter(file, tally.maxRowBytes);
  for await (const chunk of readBytes(file, signal, tally)) {
    yield rowsOf(splitter.push(chunk), tally);
    tally.report(false);
  }
  splitter.end();
  tally.report(true);
}

function* rowsOf<T>(elements: Iterable<JsonElement>, tally: RowTally<T>): Generator<T> {
  for (const { line, bytes } of elements) {
    if (bytes === undefined) tally.tooLong(line);
    else if (!isUtf8(bytes)) tally.skip(line, 'not UTF-8');
    else yield* tally.take(line, () => JSON.parse(bytes.toString('utf8')) as unknown);
  }
}
