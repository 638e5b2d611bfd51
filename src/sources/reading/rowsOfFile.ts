import type { Observable } from 'rxjs';
import { fromCsv } from '../fromCsv.js';
import { fromJson } from '../fromJson.js';
import { fromJsonl } from '../fromJsonl.js';
import { fromParquet } from '../fromParquet.js';
import type { RowOptions } from '../RowOptions.js';
import { filePath, withoutCompression } from './readBytes.js';

/** The rows of a file, whose format its ending tells. @throws RangeError for an ending that tells none. */
export function rowsOfFile<T>(path: string | URL, rows: RowOptions<T>): Observable<T> {
  const format = /\.(\w+)$/.exec(withoutCompression(filePath(path)))?.[1]?.toLowerCase();
  switch (format) {
    case 'jsonl':
    case 'ndjson':
      return fromJsonl(path, rows);
    case 'json':
      return fromJson(path, rows);
    case 'csv':
    case 'tsv':
      return fromCsv(path, rows);
    case 'parquet':
      return fromParquet(path, rows);
    default:
      throw new RangeError(`path must end in .jsonl, .ndjson, .json, .csv, .tsv or .parquet, got '${filePath(path)}'`);
  }
}
