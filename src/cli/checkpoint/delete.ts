import { from, lastValueFrom, map, mergeMap, of, catchError, toArray } from 'rxjs';
import type { RestClient } from '../../client/RestClient.js';
import type { Checkpoint } from '../../wire/rest.js';
import { checkpointPath } from './checkpointPaths.js';
import { CliError } from '../CliError.js';
import { withRest } from '../clients.js';
import { confirm } from '../terminal/confirm.js';
import type { Context } from '../context.js';
import type { Chosen } from '../declare.js';
import type { DELETE } from './command.js';
import { explain } from '../explain.js';
import { size, when } from '../output/format.js';
import { printJson } from '../output/print.js';

type DeleteOptions = Chosen<typeof DELETE>;

const AT_ONCE = 32;
const TYPES: Readonly<Record<string, string>> = {
  weights: 'training',
  sampler_weights: 'sampler',
  external_weights: 'external',
  training: 'training',
  sampler: 'sampler',
  external: 'external',
};

export default async function checkpointDelete(
  context: Context,
  options: DeleteOptions,
  given: readonly string[],
): Promise<number> {
  check(options, given);
  const { runId } = options;
  const chosen = runId === undefined ? undefined : await chooseOfRun(context, runId, options);
  const paths = chosen?.map(({ tinkerPath }) => tinkerPath) ?? given;
  if (paths.length === 0) {
    context.stdout.write(`No checkpoints found for run ${runId} matching filters\n`);
    return 0;
  }
  if (options.yes !== true && !(await askAbout(context, paths, chosen))) {
    context.stdout.write('Deletion cancelled.\n');
    return 0;
  }
  return deleteAll(context, paths);
}

function check({ runId, type, before, after }: DeleteOptions, given: readonly string[]): void {
  const wrong = (message: string, details: string) => new CliError(message, { details, exitCode: 2 });
  const example = 'Example: tinker-rx checkpoint delete --run-id <run-id> --type weights --before 2024-06-01';
  if (given.length === 0 && runId === undefined) throw wrong('Must specify checkpoint paths or --run-id', example);
  if (given.length > 0 && runId !== undefined)
    throw wrong('Cannot specify both checkpoint paths and --run-id', 'Use either paths, or --run-id with filters.');
  if ((type ?? before ?? after) !== undefined && runId === undefined)
    throw wrong('--type, --before, and --after require --run-id', example);
  if (type !== undefined && !Object.hasOwn(TYPES, type))
    throw wrong(`Invalid checkpoint type: ${type}`, 'Valid types: weights, sampler_weights, external_weights');
  for (const path of given) checkpointPath(path);
}

async function chooseOfRun(
  context: Context,
  runId: string,
  { type, before, after }: DeleteOptions,
): Promise<readonly Checkpoint[]> {
  const [beforeMs, afterMs] = [dateMs(before, Infinity), dateMs(after, -Infinity)];
  const { checkpoints } = await withRest(context, 'asking for checkpoints', (rest) => rest.listCheckpoints(runId));
  return checkpoints.filter(({ checkpointType, time }) => {
    const atMs = dateMs(time, NaN);
    return (type === undefined || checkpointType === TYPES[type]) && atMs < beforeMs && atMs > afterMs;
  });
}

/** ISO 8601; without a zone it is UTC. */
function dateMs(text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const trimmed = text.trim();
  const zoned = /[zZ]$|[+-]\d\d:?\d\d$/.test(trimmed) || !/[T ]\d/.test(trimmed) ? trimmed : `${trimmed}Z`;
  const ms = /^\d{4}-\d\d-\d\d/.test(trimmed) ? Date.parse(zoned) : NaN;
  if (Number.isNaN(ms))
    throw new CliError(`Invalid date: ${text}`, {
      details: 'Use ISO 8601: 2024-01-01, 2024-01-01T12:00:00Z',
      exitCode: 2,
    });
  return ms;
}

function askAbout(context: Context, paths: readonly string[], checkpoints?: readonly Checkpoint[]): Promise<boolean> {
  const { stderr, now } = context;
  stderr.write(`Will delete ${paths.length} checkpoint(s):\n`);
  for (const path of checkpoints === undefined ? paths : []) stderr.write(`  - ${path}\n`);
  for (const { tinkerPath, sizeBytes, time } of checkpoints ?? [])
    stderr.write(
      `  - ${tinkerPath} (${sizeBytes === undefined ? 'N/A' : size(sizeBytes)}, created ${when(time, now())})\n`,
    );
  if (checkpoints !== undefined)
    stderr.write(`\nTotal size: ${size(checkpoints.reduce((sum, { sizeBytes = 0 }) => sum + sizeBytes, 0))}\n`);
  stderr.write('WARNING: This action is permanent and cannot be undone.\n');
  return confirm(context, `Are you sure you want to delete ${paths.length} checkpoint(s)?`);
}

async function deleteAll(context: Context, paths: readonly string[]): Promise<number> {
  let done = 0;
  const outcomes = await withRest(
    context,
    () => ({
      label: 'deleting checkpoints',
      fraction: done / paths.length,
      facts: [{ text: `${done}/${paths.length}` }],
    }),
    (rest) =>
      lastValueFrom(
        from(paths).pipe(
          mergeMap((path) => deleteOne(rest, path), AT_ONCE),
          map((outcome) => (done++, outcome)),
          toArray(),
        ),
      ),
  );
  const failed = outcomes.filter((outcome) => outcome !== undefined);
  const deleted = outcomes.length - failed.length;
  if (context.format === 'json') {
    printJson(context, {
      deleted_count: deleted,
      failed: failed.map(({ path, error }) => ({ tinker_path: path, error })),
    });
  } else {
    context.stdout.write(`Deleted ${deleted} checkpoint(s)\n`);
    if (failed.length > 0) context.stderr.write(`Failed to delete ${failed.length} checkpoint(s):\n`);
    for (const { path, error } of failed) context.stderr.write(`  - ${path}: ${error}\n`);
  }
  return failed.length > 0 ? 1 : 0;
}

const deleteOne = (rest: RestClient, path: string) =>
  rest.deleteCheckpointFromTinkerPath(path).pipe(
    map(() => undefined),
    catchError((error: unknown) => of({ path, error: explain(error).message })),
  );
