import type { Observable } from 'rxjs';
import type { TaskRow } from './loadReward.js';

/** The rows of a file of tasks: JSONL, CSV or Parquet. */
export async function rowsOf(file: string): Promise<Observable<TaskRow>> {
  const { fromCsv, fromJsonl, fromParquet } = await import('../../sources/index.js');
  if (file.endsWith('.csv')) return fromCsv(file);
  return file.endsWith('.parquet') ? fromParquet<TaskRow>(file) : fromJsonl<TaskRow>(file);
}
