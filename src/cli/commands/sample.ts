import { isLeft } from 'fp-ts/lib/Either.js';
import { lastValueFrom, map, NEVER, takeUntil, tap } from 'rxjs';
import type { Renderer } from '../../chat/renderers/Renderer.js';
import type { Tokenizer } from '../../chat/tokenizer/Tokenizer.js';
import type { SampleOptions } from '../../client/index.js';
import { ModelInput } from '../../wire/modelInput.js';
import type { SampleResponse } from '../../wire/sampling.js';
import { openSampler } from '../openSampler.js';
import { INTERRUPTED, note, type Context } from '../context.js';
import { withService } from '../clients.js';
import { explain } from '../explain.js';
import { count } from '../format.js';
import { readPrompts, type Prompt } from '../readPrompts.js';
import { SampleTally } from '../SampleTally.js';
import { styleFor } from '../style.js';
import { safeText } from '../../sinks/internal/textWidth.js';
import { waitFor } from '../waitFor.js';

export interface SampleCommandOptions {
  readonly model: string;
  readonly file?: string;
  readonly whole?: boolean;
  readonly numSamples: number;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly seed?: number;
  readonly stop?: readonly string[];
  readonly system?: string;
  readonly raw?: boolean;
  readonly renderer?: string;
  readonly logprobs?: boolean;
  readonly concurrency: number;
}

/** A prompt and its place among all. */
type Asked = Prompt & { readonly index: number };

/** Samples for every prompt, and prints results in the order in which they finish. */
export default async function sample(
  context: Context,
  options: SampleCommandOptions,
  words: readonly string[],
): Promise<number> {
  let interrupted = false;
  const tally = new SampleTally(context.now);
  const { prompts, share } = readPrompts(context, { ...options, words });
  await withService(context, async (service) => {
    const { sampleFrom } = await import('../../operators/index.js');
    const { sampler, renderer } = await openSampler(context, service, options);
    const results = prompts.pipe(
      map((prompt, index): Asked => ({ ...prompt, index })),
      tap({ next: () => tally.asked++, complete: () => (tally.allAsked = true) }),
      sampleFrom(sampler, {
        request: (asked: Asked) => requestFor(asked, options, renderer),
        concurrency: options.concurrency,
        settle: true,
      }),
      tap((result) => {
        if (isLeft(result)) {
          tally.failed++;
          note(context, `Error: prompt ${result.left.item.index + 1}: ${explain(result.left.error).message}`);
        } else {
          tally.finish(result.right.response);
          print(context, options, renderer, result.right.item, result.right.response);
        }
      }),
      takeUntil(context.interrupted$.pipe(tap(() => (interrupted = true)))),
    );
    // The stream itself listens for Ctrl-C: what is under way is cancelled, not failed.
    const quiet = { ...context, interrupted$: NEVER };
    const done = lastValueFrom(results, { defaultValue: undefined });
    await waitFor(quiet, () => tally.status(share()), done, service.events$, { patient: true });
    if (interrupted) await service.destroy();
  });
  if (interrupted) {
    note(context, `Interrupted after ${count(tally.finished, 'prompt')}; the others were cancelled.`);
    return INTERRUPTED;
  }
  return tally.failed > 0 ? 1 : 0;
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
        ? renderer.buildGenerationPrompt(prompt.messages)
        : ModelInput.fromInts(renderer.tokenizer.encode(prompt.text)),
    numSamples,
    samplingParams: { maxTokens, temperature, topP, topK, seed, stop: stops },
  };
}

function print(
  context: Context,
  { logprobs, numSamples }: SampleCommandOptions,
  renderer: Renderer,
  prompt: Asked,
  { sequences }: SampleResponse,
): void {
  const { stdout, stderr } = context;
  // Where both are one terminal, the progress line has to make room.
  if (stdout.isTTY === true && stderr.isTTY === true) stderr.write('\r\u001b[K');
  const texts = sequences.map(({ tokens }) => replyOf(prompt, renderer, tokens));
  if (context.format === 'json') {
    const samples = sequences.map((sequence, place) => ({
      text: texts[place],
      stop_reason: sequence.stopReason,
      ...(logprobs === true
        ? { tokens: Array.from(sequence.tokens), logprobs: Array.from(sequence.logprobs ?? []) }
        : {}),
    }));
    stdout.write(`${JSON.stringify({ index: prompt.index, prompt: prompt.source, samples })}\n`);
    return;
  }
  const { dim } = styleFor(stdout);
  for (const [place, text] of texts.entries()) {
    const which = numSamples > 1 ? ` sample ${place + 1}` : '';
    // One prompt and one sample is just the text, so that it can be piped.
    if (prompt.alone !== true || numSamples > 1) stdout.write(`${dim(`── prompt ${prompt.index + 1}${which}`)}\n`);
    stdout.write(`${safeText(text)}\n`);
  }
}

const replyOf = (prompt: Prompt, renderer: { readonly tokenizer: Tokenizer } & Renderer, tokens: Int32Array): string =>
  prompt.kind === 'chat' ? renderer.parse(tokens).text : renderer.tokenizer.decode(tokens, { skipSpecialTokens: true });
