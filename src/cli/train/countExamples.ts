import { basename } from 'node:path';
import { lastValueFrom, scan } from 'rxjs';
import type { Renderer } from '../../chat/renderers/Renderer.js';
import type { SourceEvent } from '../../sources/index.js';
import type { Context } from '../context.js';
import { note } from '../context.js';
import { CliError } from '../CliError.js';
import { count } from '../format.js';
import { waitFor } from '../waitFor.js';
import type { TrainConfig } from './TrainConfig.js';

/** How many training examples a file makes. Reads and tokenises all of it: a bad row is found before it costs a step. */
export async function countExamples(context: Context, config: TrainConfig, renderer: Renderer): Promise<number> {
  const { fromConversations } = await import('../../sources/index.js');
  const { toDatums } = await import('../../operators/index.js');
  const { data, skipBadRows, maxLength, trainOn } = config;
  let progress: (SourceEvent & { readonly type: 'source-progress' }) | undefined;
  const label = () => {
    const { bytes = 0, totalBytes = 0, rows = 0 } = progress ?? {};
    const share = totalBytes > 0 ? `${Math.floor((bytes / totalBytes) * 100)} %, ` : '';
    return `reading ${basename(data)}: ${share}${count(rows, 'conversation')}`;
  };
  const counted = scan(
    (
      sum: { readonly examples: number; readonly tokens: number },
      { modelInput }: { modelInput: { length: number } },
    ) => ({
      examples: sum.examples + 1,
      tokens: sum.tokens + modelInput.length,
    }),
    { examples: 0, tokens: 0 },
  );
  const onEvent = (event: SourceEvent) => {
    if (event.type === 'source-progress') progress = event;
  };
  const examples = fromConversations(data, { onBadRow: skipBadRows ? 'skip' : 'error', onEvent }).pipe(
    toDatums(renderer, {
      ...(trainOn === undefined ? {} : { trainOn }),
      ...(maxLength === undefined ? {} : { maxLength }),
    }),
    counted,
  );
  const nothing = { examples: 0, tokens: 0 };
  const sum = await waitFor(context, label, lastValueFrom(examples, { defaultValue: nothing }));
  if (sum.examples === 0) throw new CliError(`${data} holds no conversations`);
  const skipped =
    progress !== undefined && progress.badRows > 0 ? `, ${count(progress.badRows, 'bad row')} skipped` : '';
  note(context, `${basename(data)}: ${count(sum.examples, 'example')}, ${count(sum.tokens, 'token')}${skipped}`);
  return sum.examples;
}
