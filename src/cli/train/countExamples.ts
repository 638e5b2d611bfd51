import { basename } from 'node:path';
import { lastValueFrom, scan, takeUntil, tap } from 'rxjs';
import type { Renderer } from '../../chat/renderers/Renderer.js';
import type { SourceEvent } from '../../sources/index.js';
import { Transfer } from '../byteBar.js';
import type { Context } from '../context.js';
import { note } from '../context.js';
import { CliError } from '../CliError.js';
import { count } from '../format.js';
import type { Status } from '../statusLine.js';
import { waitFor } from '../waitFor.js';
import type { TrainConfig } from './TrainConfig.js';

/** How many training examples a file makes. Reads and tokenises all of it: a bad row is found before it costs a step. */
export async function countExamples(context: Context, config: TrainConfig, renderer: Renderer): Promise<number> {
  const { fromConversations } = await import('../../sources/index.js');
  const { toDatums } = await import('../../operators/index.js');
  const { data, skipBadRows, maxLength, trainOn } = config;
  let progress: (SourceEvent & { readonly type: 'source-progress' }) | undefined;
  let tokens = 0;
  const transfer = new Transfer(context.now);
  const label = (): Status => {
    const { fraction, facts = [] } = transfer.status();
    const told = [
      { text: count(progress?.rows ?? 0, 'conversation'), keep: 5 },
      { text: count(tokens, 'token'), keep: 1.5 },
    ];
    return { label: `reading ${basename(data)}`, fraction, facts: [...facts, ...told] };
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
    if (event.type !== 'source-progress') return;
    progress = event;
    transfer.update(event.bytes, event.totalBytes);
  };
  const examples = fromConversations(data, { onBadRow: skipBadRows ? 'skip' : 'error', onEvent }).pipe(
    toDatums(renderer, {
      ...(trainOn === undefined ? {} : { trainOn }),
      ...(maxLength === undefined ? {} : { maxLength }),
    }),
    counted,
    tap((sum) => ({ tokens } = sum)),
    // What waits for it fails on Ctrl-C; this only stops the reading.
    takeUntil(context.interrupted$),
  );
  const nothing = { examples: 0, tokens: 0 };
  const sum = await waitFor(context, label, lastValueFrom(examples, { defaultValue: nothing }));
  if (sum.examples === 0) throw new CliError(`${data} holds no conversations`);
  const skipped =
    progress !== undefined && progress.badRows > 0 ? `, ${count(progress.badRows, 'bad row')} skipped` : '';
  note(context, `${basename(data)}: ${count(sum.examples, 'example')}, ${count(sum.tokens, 'token')}${skipped}`);
  return sum.examples;
}
