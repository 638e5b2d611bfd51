import type { Observable } from 'rxjs';
import { rowsOfFile } from './reading/rowsOfFile.js';
import type { RowOptions } from './RowOptions.js';
import { type Preference, toPreference } from '../chat/data/toPreference.js';

/**
 * The preferences of a dataset, in order, as fast as demand allows.
 *
 * ```ts
 * fromPreferences('pairs.jsonl').pipe(toPairs(renderer), batch({ size: 64 }), map((pairs) => pairs.flat()), trainPreferences(trainer, options))
 * ```
 * The file's format is told by its ending, as `fromConversations` does. Each row may have any of the forms
 * {@link toPreference} knows; one that has none of them is a bad row. Like {@link fromJsonl} in all else.
 */
export function fromPreferences(
  path: string | URL,
  options: Omit<RowOptions<Preference>, 'decode'> = {},
): Observable<Preference> {
  return rowsOfFile(path, { ...options, decode: toPreference });
}
