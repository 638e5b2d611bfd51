import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { lastValueFrom, map, type Observable, toArray } from 'rxjs';
import { fromRecorded, type RecordedCall } from '../../sources/fromRecorded.js';
import { withImageUrls } from '../../serve/traffic/withImageUrls.js';
import { CliError } from '../CliError.js';
import { note, type Context } from '../context.js';
import { count } from '../output/format.js';

export interface TrafficOptions {
  readonly as: 'conversations' | 'preferences' | 'tasks' | 'calls';
  readonly minRating?: number;
  readonly model?: string;
  readonly since?: string;
  readonly until?: string;
  readonly output?: string;
  readonly force?: boolean;
}

/** Writes what was recorded in a form that other commands take. */
export default async function traffic(context: Context, options: TrafficOptions, file: string): Promise<void> {
  const { as, minRating, model, since = '', until, output, force = false } = options;
  if (output !== undefined && existsSync(output) && !force)
    throw new CliError(`Target file already exists: ${output}`, { details: 'Use --force to replace it.' });
  const rows: Observable<unknown> = fromRecorded(file, {
    as,
    ...(minRating === undefined ? {} : { minRating }),
    ...(model === undefined ? {} : { model }),
    where: ({ at }: RecordedCall) => at >= since && (until === undefined || at < until),
  });
  const lines = await lastValueFrom(
    rows.pipe(
      map((row) => `${JSON.stringify(withImageUrls(row))}\n`),
      toArray(),
    ),
  );
  if (lines.length === 0)
    throw new CliError(`No call of ${file} is among those asked for`, {
      details: 'Calls that failed are left out; preferences need calls with ratings or corrections.',
    });
  if (output === undefined) context.stdout.write(lines.join(''));
  else await writeFile(output, lines);
  note(context, `${count(lines.length, as.slice(0, -1))}${output === undefined ? '' : ` written to ${output}`}.`);
}
