import { basename } from 'node:path';
import { lastValueFrom, type Observable, take, takeUntil, tap, toArray } from 'rxjs';
import type { Renderer } from '../../../chat/renderers/core/Renderer.js';
import type { SourceEvent } from '../../../sources/index.js';
import type { Datum } from '../../../wire/datum.js';
import { Transfer } from '../../terminal/byteBar.js';
import type { Context } from '../../context.js';
import { note } from '../../context.js';
import { CliError } from '../../CliError.js';
import { count } from '../../output/format.js';
import type { Status } from '../../terminal/statusLine.js';
import { waitFor } from '../../terminal/waitFor.js';
import type { TrainConfig } from './train.js';
import { datumOptions, SHUFFLE_WINDOW } from './trainingSteps.js';
import { RowReport } from './RowReport.js';

/**
 * How many training examples a file makes. Reads and tokenises what the run is going to read, which is all of it without `steps`: a bad row is
 * found before it costs a step.
 */
export async function countExamples(context: Context, config: TrainConfig, renderer: Renderer): Promise<number> {
  let examples = 0;
  const { steps, batchSize } = config;
  const most = steps === undefined ? Infinity : steps * batchSize + SHUFFLE_WINDOW;
  await read(context, config, renderer, config.data, (datums) =>
    datums.pipe(
      take(most),
      tap(() => examples++),
    ),
  );
  return examples;
}

/** How many examples a file makes, and how many tokens they have. */
export async function readExampleTokens(
  context: Context,
  config: TrainConfig,
  renderer: Renderer,
  file: string,
): Promise<{ readonly examples: number; readonly tokens: number }> {
  let [examples, tokens] = [0, 0];
  const count = ({ modelInput }: Datum) => {
    examples++;
    tokens += modelInput.length;
  };
  await read(context, config, renderer, file, (datums) => datums.pipe(tap(count)));
  return { examples, tokens };
}

/** The held-out examples, all of them: they are kept for the whole run. */
export async function readValidation(
  context: Context,
  config: TrainConfig,
  renderer: Renderer,
  file: string,
): Promise<readonly Datum[]> {
  let datums: readonly Datum[] = [];
  await read(context, config, renderer, file, (source) =>
    source.pipe(
      toArray(),
      tap((all) => (datums = all)),
    ),
  );
  return datums;
}

/** Reads a file of conversations as examples to its end, and says what it holds. */
async function read(
  context: Context,
  config: TrainConfig,
  renderer: Renderer,
  file: string,
  use: (datums: Observable<Datum>) => Observable<unknown>,
): Promise<void> {
  const { fromConversations } = await import('../../../sources/index.js');
  const { toDatums } = await import('../../../operators/index.js');
  const report = new RowReport(file);
  const transfer = new Transfer(context.now);
  let [rows, examples, tokens] = [0, 0, 0];
  const label = (): Status => {
    const { fraction, facts = [] } = transfer.status();
    const told = [
      { text: count(rows, 'conversation'), keep: 5 },
      { text: count(tokens, 'token'), keep: 1.5 },
    ];
    return { label: `reading ${basename(file)}`, fraction, facts: [...facts, ...told] };
  };
  const onEvent = (event: SourceEvent) => {
    report.take(event);
    if (event.type !== 'source-progress') return;
    ({ rows } = event);
    transfer.update(event.bytes, event.totalBytes);
  };
  const datums = fromConversations(file, { onBadRow: config.skipBadRows ? 'skip' : 'error', onEvent }).pipe(
    toDatums(renderer, datumOptions(config)),
    tap(({ modelInput }) => {
      examples++;
      tokens += modelInput.length;
    }),
    // What waits for it fails on Ctrl-C; this only stops the reading.
    takeUntil(context.interrupted$),
  );
  await waitFor(context, label, lastValueFrom(use(datums), { defaultValue: undefined })).catch((error: unknown) => {
    throw nothingToTrain(error) ? new CliError(`${file}: ${(error as Error).message}`) : error;
  });
  if (examples === 0) throw new CliError(`${file} holds no conversations${report.losses}`);
  note(context, `${basename(file)}: ${count(examples, 'example')}, ${count(tokens, 'token')}${report.losses}`);
  if (report.unused !== undefined) note(context, report.unused);
}

const nothingToTrain = (error: unknown): boolean =>
  error instanceof Error && error.name === 'ValidationError' && error.message.startsWith('nothing to train');
