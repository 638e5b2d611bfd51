import type { Observable } from 'rxjs';
import { rowsOfFile } from './reading/rowsOfFile.js';
import type { RowOptions } from './RowOptions.js';
import { type Conversation, toConversation } from '../chat/data/toConversation.js';

/**
 * The conversations of a chat dataset, in order, as fast as demand allows.
 *
 * ```ts
 * fromConversations('chats.jsonl').pipe(toDatums(renderer), batch({ size: 128 }), train(trainer, options))
 * ```
 * The file's format is told by its ending: `.jsonl` and `.ndjson`, `.json` (one array), `.csv` and `.tsv`, `.parquet`;
 * the first five also as `.gz`, or as `.zst` if Node supports it. Each row may have any of the forms {@link toConversation}
 * knows; one that has none of them is a bad row. Like {@link fromJsonl} in all else.
 */
export function fromConversations(
  path: string | URL,
  options: Omit<RowOptions<Conversation>, 'decode'> = {},
): Observable<Conversation> {
  return rowsOfFile(path, { ...options, decode: toConversation });
}
