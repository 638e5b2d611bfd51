import type { Observable } from 'rxjs';
import { fromRowBatches } from './fromRowBatches.js';
import { type CsvRecord, CsvSplitter } from './internal/csvSplitter.js';
import { filePath, readBytes, withoutCompression } from './reading/readBytes.js';
import { RowTally } from './internal/rowTally.js';
import type { RowOptions } from './RowOptions.js';
import { SourceError } from './SourceError.js';

/** Options of `fromCsv`. */
export interface CsvOptions<T> extends RowOptions<T> {
  /** One character. Default: a tab for files ending in `.tsv`, else a comma. */
  readonly delimiter?: string;
  /** The names of the columns, for a file without a header. Default: the first record. */
  readonly columns?: readonly string[];
}

/**
 * The records of a CSV file as objects of strings, in order, as fast as demand allows.
 *
 * ```ts
 * fromCsv<{ question: string; answer: string }>('pairs.csv')
 * ```
 * Quoting as in RFC 4180: fields in quotes may hold delimiters, line ends and doubled quotes. A record with too few or
 * too many fields, text after a closing quote, a quote that never closes, or text that is not UTF-8 is a bad row, named by
 * the line it starts on. A header that names a column twice is a {@link SourceError}. Values are strings; give `decode` to have numbers. Like {@link fromJsonl} in all else.
 */
export function fromCsv<T = Record<string, string>>(path: string | URL, options: CsvOptions<T> = {}): Observable<T> {
  const { delimiter } = options;
  if (delimiter !== undefined && (delimiter.length !== 1 || /["\r\n]/.test(delimiter))) {
    throw new RangeError(`delimiter must be one character other than a quote or a line end, got '${delimiter}'`);
  }
  const twice = repeated(options.columns ?? []);
  if (twice !== undefined) throw new RangeError(`columns names '${twice}' twice`);
  return fromRowBatches((signal) => records(filePath(path), signal, options), { name: 'fromCsv' });
}

async function* records<T>(file: string, signal: AbortSignal, options: CsvOptions<T>): AsyncGenerator<Iterable<T>> {
  const tally = new RowTally<T>(file, options);
  const delimiter = options.delimiter ?? (/\.tsv$/i.test(withoutCompression(file)) ? '\t' : ',');
  const splitter = new CsvSplitter(delimiter, tally.maxRowBytes);
  let { columns } = options;
  function* rowsOf(found: Iterable<CsvRecord>): Generator<T> {
    for (const record of found) {
      if (columns === undefined) columns = headerOf(record, file);
      else yield* tally.take(record.line, () => toObject(record, columns!));
    }
  }
  for await (const chunk of readBytes(file, signal, tally)) {
    yield rowsOf(splitter.push(chunk));
    tally.report(false);
  }
  yield rowsOf(splitter.end());
  tally.report(true);
}

function headerOf({ line, fields, problem }: CsvRecord, file: string): readonly string[] {
  if (problem !== undefined) throw new SourceError(`${file}:${line}`, `the header: ${problem}`);
  const twice = repeated(fields);
  if (twice !== undefined) throw new SourceError(`${file}:${line}`, `the header names the column '${twice}' twice`);
  return fields;
}

/** A name that comes twice: a row has room for one. Columns without a name, which spreadsheets leave at the end, do not count. */
function repeated(columns: readonly string[]): string | undefined {
  return columns.find((column, place) => column !== '' && columns.indexOf(column) < place);
}

function toObject({ fields, problem }: CsvRecord, columns: readonly string[]): Record<string, string> {
  if (problem !== undefined) throw new Error(problem);
  if (fields.length !== columns.length) throw new Error(`expected ${columns.length} fields, got ${fields.length}`);
  return Object.fromEntries(columns.map((column, place) => [column, fields[place]!]));
}
