import { isLeft } from 'fp-ts/lib/Either.js';
import { concatMap, lastValueFrom, NEVER, takeUntil, tap } from 'rxjs';
import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import { withTools } from '../../chat/renderers/tools/withTools.js';
import type { Tokenizer } from '../../chat/tokenizer/Tokenizer.js';
import type { SampleOptions } from '../../client/index.js';
import { ModelInput } from '../../wire/modelInput.js';
import type { SampleResponse } from '../../wire/sampling.js';
import type { SAMPLE } from './command.js';
import { openSampler } from './openSampler.js';
import { INTERRUPTED, note, type Context } from '../context.js';
import { CliError } from '../CliError.js';
import { withService } from '../clients.js';
import type { Chosen } from '../declare.js';
import { explain } from '../explain.js';
import { count } from '../output/format.js';
import { readPrompts, type Prompt } from './readPrompts.js';
import { openSampleOutput, type SampleLine } from './sampleOutput.js';
import { SampleTally } from './SampleTally.js';
import { styleFor } from '../terminal/style.js';
import { safeText } from '../../support/terminal/textWidth.js';
import { waitFor } from '../terminal/waitFor.js';

type SampleCommandOptions = Chosen<typeof SAMPLE>;

/** A prompt and its place among all. */
type Asked = Exclude<Prompt, { readonly kind: 'bad' }> & { readonly index: number };

/** Samples for every prompt, and prints results in the order in which they finish. */
export default async function sample(
  context: Context,
  options: SampleCommandOptions,
  words: readonly string[],
): Promise<number> {
  const { skipBadRows = false, out, resume = false } = options;
  if (resume && out === undefined) throw new CliError('--resume without --out', { exitCode: 2 });
  let interrupted = false;
  const tally = new SampleTally(context.now);
  const { prompts, name, share } = readPrompts(context, { ...options, words });
  const output = out === undefined ? undefined : openSampleOutput(out, resume);
  if (output !== undefined && output.found > 0) note(context, `${out}: ${count(output.found, 'prompt')} done already`);
  /** Where a prompt stands, for a message: file and line, where it has any. */
  const placeOf = ({ line, index }: Pick<Asked, 'line' | 'index'>) =>
    line === undefined || name === undefined ? `prompt ${index + 1}` : `${name}:${line}`;
  /** Reports a prompt that failed. The others continue. */
  const fail = (prompt: Pick<Asked, 'line' | 'index'>, error: unknown) => {
    tally.failed++;
    const isBad = error instanceof CliError || (error as { readonly code?: unknown }).code === 'renderer';
    if (isBad) tally.bad++;
    if (isBad && skipBadRows) tally.skipped++;
    note(context, `${isBad && skipBadRows ? 'Skipped' : 'Error'}: ${placeOf(prompt)}: ${explain(error).message}`);
  };
  try {
    await withService(context, async (service) => {
      const { sampleFrom } = await import('../../operators/index.js');
      const { sampler, renderer } = await openSampler(context, service, options);
      const results = prompts.pipe(
        concatMap((prompt, index): Asked[] => {
          if (prompt.kind !== 'bad') return output?.has({ ...prompt, index }) === true ? [] : [{ ...prompt, index }];
          // The first row speaks for the others: they are told of once, before anything is sampled.
          if (prompt.isUnknown === true && index === 0)
            throw new CliError(`${name}: ${prompt.reason}`, {
              details: 'Say which column holds the prompts: --column <name>.',
              exitCode: 2,
            });
          tally.asked++;
          fail({ ...prompt, index }, new CliError(prompt.reason));
          return [];
        }),
        tap({ next: () => tally.asked++, complete: () => (tally.allAsked = true) }),
        sampleFrom(sampler, {
          request: (asked: Asked) => requestFor(asked, options, renderer),
          concurrency: options.concurrency,
          settle: true,
        }),
        tap((result) => {
          if (isLeft(result)) return fail(result.left.item, result.left.error);
          const { item, response } = result.right;
          tally.finish(response);
          if (output === undefined) print(context, options, renderer, item, response);
          else output.append(lineOf(options, renderer, item, response));
        }),
        takeUntil(context.interrupted$.pipe(tap(() => (interrupted = true)))),
      );
      // The stream listens for Ctrl-C, so that samples in flight are cancelled instead of failed.
      const quiet = { ...context, interrupted$: NEVER };
      const done = lastValueFrom(results, { defaultValue: undefined });
      await waitFor(quiet, () => tally.status(share()), done, service.events$, { patient: true });
      if (interrupted) await service.destroy();
    });
  } finally {
    output?.close();
  }
  const again = output === undefined ? '' : ` The same command with --resume does the rest.`;
  if (interrupted) {
    note(context, `Interrupted after ${count(tally.finished, 'prompt')}; the others were cancelled.${again}`);
    return INTERRUPTED;
  }
  if (tally.asked === 0 && (output?.found ?? 0) === 0) throw new CliError(`${name} holds no prompts`);
  const failed = tally.failed - tally.skipped;
  if (output !== undefined) {
    const skipped = tally.skipped === 0 ? '' : `, ${count(tally.skipped, 'bad row')} skipped`;
    const lost = failed === 0 ? '' : `, ${failed} failed.${tally.failed > tally.bad ? again : ''}`;
    note(context, `${out}: ${count(output.found + tally.finished, 'prompt')}${skipped}${lost}`);
  }
  return failed > 0 ? 1 : 0;
}

function requestFor(
  prompt: Asked,
  { numSamples, maxTokens, temperature, topP, topK, seed, stop }: SampleCommandOptions,
  renderer: Renderer,
): SampleOptions {
  const stops = stop ?? (prompt.kind === 'chat' ? renderer.getStopSequences() : undefined);
  return {
    prompt:
      prompt.kind === 'chat'
        ? renderer.buildGenerationPrompt(withTools(renderer, prompt.messages, prompt.tools))
        : ModelInput.fromInts(renderer.tokenizer.encode(prompt.text)),
    numSamples,
    samplingParams: { maxTokens, temperature, topP, topK, seed, stop: stops },
  };
}

function lineOf(
  { logprobs }: SampleCommandOptions,
  renderer: Renderer,
  prompt: Asked,
  { sequences }: SampleResponse,
): SampleLine {
  const samples = sequences.map((sequence) => ({
    text: replyOf(prompt, renderer, sequence.tokens),
    stop_reason: sequence.stopReason,
    ...(logprobs === true
      ? { tokens: Array.from(sequence.tokens), logprobs: Array.from(sequence.logprobs ?? []) }
      : {}),
  }));
  return { index: prompt.index, prompt: prompt.source, samples };
}

function print(
  context: Context,
  options: SampleCommandOptions,
  renderer: Renderer,
  prompt: Asked,
  response: SampleResponse,
): void {
  const { stdout, stderr } = context;
  // Where both are one terminal, the progress line has to make room.
  if (stdout.isTTY === true && stderr.isTTY === true) stderr.write('\r\u001b[K');
  if (context.format === 'json') {
    stdout.write(`${JSON.stringify(lineOf(options, renderer, prompt, response))}\n`);
    return;
  }
  const { dim } = styleFor(stdout);
  const several = options.numSamples > 1;
  for (const [place, { tokens }] of response.sequences.entries()) {
    const which = several ? ` sample ${place + 1}` : '';
    // One prompt and one sample is just the text, so that it can be piped.
    if (prompt.alone !== true || several) stdout.write(`${dim(`── prompt ${prompt.index + 1}${which}`)}\n`);
    stdout.write(`${safeText(replyOf(prompt, renderer, tokens))}\n`);
  }
}

const replyOf = (prompt: Prompt, renderer: { readonly tokenizer: Tokenizer } & Renderer, tokens: Int32Array): string =>
  prompt.kind === 'chat' ? renderer.parse(tokens).text : renderer.tokenizer.decode(tokens, { skipSpecialTokens: true });
