import type { Observable } from 'rxjs';
import type { TaskRow } from '../../../rl/index.js';

/** The rows of a file of tasks, in any format that data may have. */
export async function rowsOf(file: string): Promise<Observable<TaskRow>> {
  const { rowsOfFile } = await import('../../../sources/reading/rowsOfFile.js');
  return rowsOfFile<TaskRow>(file, {});
}
