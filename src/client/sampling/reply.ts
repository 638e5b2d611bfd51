import { concatMap, defer, map, type Observable, of } from 'rxjs';
import type { Message } from '../../chat/renderers/core/Message.js';
import type { ParsedResponse, Renderer, ResponseDelta } from '../../chat/renderers/core/Renderer.js';
import type { Sampleable } from '../../operators/sampling/sampleFrom.js';
import { cancelling } from '../../support/cancelling.js';
import type { ModelInput } from '../../wire/modelInput.js';
import type { SampledSequence, SamplingParams } from '../../wire/sampling.js';
import { kindOf } from '../../support/checks.js';
import { ValidationError } from '../../wire/tinkerError.js';
import type { CallOptions } from '../CallOptions.js';
import { sampleInPieces } from './sampleInPieces.js';

/** Options of `SamplingClient.reply`. */
export interface ReplyOptions extends CallOptions {
  /** A system message before what is asked. Default: none. */
  readonly system?: string;
  /** How to sample. Default: temperature 1, up to the end of the reply; the renderer's stop sequences stop. */
  readonly samplingParams?: SamplingParams;
  /** Writes the prompt and reads the reply. Default: the one recommended for the model. */
  readonly renderer?: Renderer;
}

/** Options of `SamplingClient.reply$`. */
export interface ReplyStreamOptions extends Omit<ReplyOptions, keyof CallOptions> {
  /**
   * Ask for the reply in pieces of this many tokens, each a separate request that continues the ones before: ≥ 1. Default: one request, and
   * everything arrives when the whole reply is sampled, because the service has no partial results.
   */
  readonly pieceTokens?: number;
}

/** A reply that was sampled and read. */
export interface SampledReply extends ParsedResponse {
  /** The tokens as they were sampled, their log probabilities, and why they ended. */
  readonly sequence: SampledSequence;
}

/** What is asked: the user's words, or a conversation that the model continues. */
export type Asked = string | readonly Message[];

/** Samples one reply and reads it. */
export const replyOnce = (
  sampler: Sampleable,
  renderer$: Observable<Renderer>,
  asked: Asked,
  options: ReplyOptions,
): Observable<SampledReply> =>
  withPrompt(renderer$, asked, options, (renderer, prompt, samplingParams) =>
    cancelling(sampler.sample({ prompt, samplingParams })).pipe(
      map(({ sequences }) => ({ ...renderer.parse(sequences[0]!.tokens), sequence: sequences[0]! })),
    ),
  );

/** Samples one reply and gives it as it is read. */
export const replyDeltas = (
  sampler: Sampleable,
  renderer$: Observable<Renderer>,
  asked: Asked,
  options: ReplyStreamOptions,
): Observable<ResponseDelta> =>
  withPrompt(renderer$, asked, options, (renderer, prompt, samplingParams) => {
    const { pieceTokens } = options;
    const pieces: Observable<{ readonly tokens: Int32Array }> =
      pieceTokens === undefined
        ? cancelling(sampler.sample({ prompt, samplingParams })).pipe(map(({ sequences }) => sequences[0]!))
        : sampleInPieces(sampler, { prompt, samplingParams, tokens: pieceTokens, tokenizer: renderer.tokenizer });
    return pieces.pipe(
      map(({ tokens }) => tokens),
      renderer.parseStream(),
    );
  });

function withPrompt<A>(
  renderer$: Observable<Renderer>,
  asked: Asked,
  options: ReplyOptions,
  sample: (renderer: Renderer, prompt: ModelInput, params: SamplingParams) => Observable<A>,
): Observable<A> {
  if (typeof asked !== 'string' && !Array.isArray(asked))
    throw new ValidationError(`reply needs a text or a list of messages, got ${kindOf(asked)}`);
  if (typeof options !== 'object' || options === null) throw new ValidationError('options must be an object');
  const { system, samplingParams, renderer } = options;
  return defer(() => (renderer === undefined ? renderer$ : of(renderer))).pipe(
    concatMap((chosen) => {
      const said: readonly Message[] = typeof asked === 'string' ? [{ role: 'user', content: asked }] : asked;
      const messages: readonly Message[] = system === undefined ? said : [{ role: 'system', content: system }, ...said];
      const params = { stop: chosen.getStopSequences(), ...samplingParams };
      return sample(chosen, chosen.buildGenerationPrompt(messages), params);
    }),
  );
}
