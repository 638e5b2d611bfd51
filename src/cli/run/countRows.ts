import { basename } from 'node:path';
import { count as counted, firstValueFrom, takeUntil, type Observable } from 'rxjs';
import { CliError } from '../CliError.js';
import { note, type Context } from '../context.js';
import { count } from '../output/format.js';
import { waitFor } from '../terminal/waitFor.js';

/** Warns where all rows together do not fill the batch of one step: that is rarely meant. */
export function warnOfFewRows(context: Context, rows: number, perStep: number, unit: string, flag: string): void {
  if (rows >= perStep) return;
  note(
    context,
    `Warning: ${count(rows, unit)} ${rows === 1 ? 'does' : 'do'} not fill a batch of ${perStep}, so a pass over the data is less than one step. ` +
      `A smaller ${flag} gives more steps.`,
  );
}

/** Reads a file once and says how many rows it has, by what they are called. @throws CliError if it has none */
export async function countRows(
  context: Context,
  file: string,
  rows: Observable<unknown>,
  name: string,
): Promise<number> {
  const all = rows.pipe(counted(), takeUntil(context.interrupted$));
  const found = await waitFor(context, `reading ${basename(file)}`, firstValueFrom(all, { defaultValue: 0 }));
  if (found === 0) throw new CliError(`${file} holds no ${name}s`);
  note(context, `${basename(file)}: ${count(found, name)}`);
  return found;
}
