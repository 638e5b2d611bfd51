import { filter, map, type Observable } from 'rxjs';
import { fromJsonl } from '../../sources/fromJsonl.js';
import { decodeLine } from './internal/evalLines.js';
import type { EvalRecord } from './record.js';

/** The records of a result file, in the order in which they finished. Pauses while downstream operators are full. */
export function fromEval(path: string): Observable<EvalRecord> {
  return fromJsonl<EvalRecord | undefined>(path, { decode: (row) => decodeLine(row).record }).pipe(
    filter((record) => record !== undefined),
    map((record) => record),
  );
}
