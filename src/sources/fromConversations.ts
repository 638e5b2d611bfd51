import type { Observable } from 'rxjs';
import { fromCsv } from './fromCsv.js';
import { fromJson } from './fromJson.js';
import { fromJsonl } from './fromJsonl.js';
import { fromParquet } from './fromParquet.js';
import { filePath, withoutCompression } from './internal/readBytes.js';
import type { RowOptions } from './RowOptions.js';
import { type Conversation, toConversation } from './toConversation.js';

/**
 * The conversations of a chat dataset, in order, as fast as demand allows.
 *
 * ```ts
 * fromConversations('chats.jsonl').pipe(toDatums(renderer), batch({ size: 128 }), train(trainer, options))
 * ```
 * The file's format is told by its ending: `.jsonl` and `.ndjson`, `.json` (one array), `.csv` and `.tsv`, `.parquet`;
 * the first five also as `.gz`. Each row may have any of the forms {@link toConversation} knows; one that has none of
 * them is a bad row. Like {@link fromJsonl} in all else.
 */
export function fromConversations(
  path: string | URL,
  options: Omit<RowOptions<Conversation>, 'decode'> = {},
): Observable<Conversation> {
  const rows = { ...options, decode: toConversation };
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
