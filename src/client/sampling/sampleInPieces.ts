import { defer, EMPTY, expand, map, Observable } from 'rxjs';
import type { Tokenizer } from '../../chat/tokenizer/Tokenizer.js';
import { cancelling } from '../../support/cancelling.js';
import type { Sampleable } from '../../operators/sampling/sampleFrom.js';
import type { ModelInput } from '../../wire/modelInput.js';
import type { SampledSequence, SamplingParams, StopReason, TopkLogprobs } from '../../wire/sampling.js';
import { ValidationError } from '../../wire/tinkerError.js';

/** Options of {@link sampleInPieces}. */
export interface SampleInPiecesOptions {
  /** What to continue. */
  readonly prompt: ModelInput;
  /** Maximum tokens per piece: ≥ 1. Each piece is a separate request, so small pieces cost more. */
  readonly tokens: number;
  /** As for `sample`. `maxTokens` is for all pieces together; piece n is sampled with `seed + n`. */
  readonly samplingParams?: SamplingParams;
  /** The k most likely tokens at every sampled position. Default 0: none. */
  readonly topkSampleLogprobs?: number;
  /** Needed where `stop` has strings: one may begin in a piece and end in the next. */
  readonly tokenizer?: Pick<Tokenizer, 'decodeBytes'>;
}

/** A part of a sample. Joined, the pieces are what one request would have given. */
export interface SamplePiece<S = Sampleable> {
  /** 0, 1, 2, … */
  readonly index: number;
  /** The tokens of this piece. */
  readonly tokens: Int32Array;
  /** One value per token, if the service returns them. */
  readonly logprobs: Float32Array | undefined;
  /** The most likely tokens at each position, where they were asked for. */
  readonly topkLogprobs: TopkLogprobs | undefined;
  /** Why the sample ended; undefined on every piece but the last. */
  readonly stopReason: StopReason | undefined;
  /** Which sampler it came from: another one than the piece before if a newer one took over. */
  readonly sampler: S;
  /** Tokens of this request's prompt, earlier pieces included. */
  readonly promptTokens: number;
  /** How many of them came from the service's prefix cache. */
  readonly promptCacheHitTokens: number;
}

/**
 * One sample, continued piece by piece, so that its text streams on any server and a cancelled one keeps what it has.
 *
 * ```
 * request 1  ----x|
 * request 2       ----y|
 * result     ----x----(y|)
 * ```
 * `sampler` may be a function: it is asked before each piece, so that a newer sampler can take over at a boundary.
 * Nothing is sent before subscribing; unsubscribing cancels the request in flight. A failed request ends the stream
 * with its error, after the pieces before it. It holds one piece at a time and the tokens sampled so far.
 * ```ts
 * sampleInPieces(sampler, { prompt, tokens: 32, samplingParams: { maxTokens: 512, stop: renderer.getStopSequences() } })
 * ```
 * @throws ValidationError for a `tokens` below 1, or stop strings without a tokenizer
 */
export function sampleInPieces<S extends Sampleable>(
  sampler: S | (() => S),
  options: SampleInPiecesOptions,
): Observable<SamplePiece<S>> {
  const { prompt, tokens, samplingParams = {}, topkSampleLogprobs = 0, tokenizer } = options;
  if (!Number.isSafeInteger(tokens) || tokens < 1) {
    throw new ValidationError(`tokens must be an integer ≥ 1, got ${tokens}`);
  }
  const { maxTokens = Infinity, seed, stop } = samplingParams;
  const stops = (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((entry) => typeof entry === 'string');
  if (stops.length > 0 && tokenizer === undefined) {
    throw new ValidationError('stop has strings: sampling in pieces needs a tokenizer to find one across two pieces');
  }

  const request = (sofar: Sofar, index: number): Observable<SamplePiece<S>> =>
    defer(() => {
      const from = typeof sampler === 'function' ? sampler() : sampler;
      const asked = Math.min(tokens, maxTokens - sofar.count);
      const extended = sofar.input(prompt);
      const call = from.sample({
        prompt: extended,
        samplingParams: { ...samplingParams, maxTokens: asked, ...(seed === undefined ? {} : { seed: seed + index }) },
        ...(topkSampleLogprobs > 0 ? { topkSampleLogprobs } : {}),
      });
      return cancelling(call).pipe(
        map(({ sequences, promptCacheHitTokens }) => {
          const sequence = sofar.add(sequences[0]!, stops, tokenizer);
          // Fewer than asked for without a stop: the context is full.
          const full = sequence.tokens.length < asked || sofar.count >= maxTokens;
          const ended = sequence.stopReason === 'stop' || full;
          return {
            index,
            tokens: sequence.tokens,
            logprobs: sequence.logprobs,
            topkLogprobs: sequence.topkLogprobs,
            stopReason: ended ? sequence.stopReason : undefined,
            sampler: from,
            promptTokens: extended.length,
            promptCacheHitTokens,
          };
        }),
      );
    });

  return new Observable((subscriber) => {
    const sofar = new Sofar();
    // `expand` asks for the next piece even if nobody wanted more than this one.
    const next = ({ stopReason, index }: SamplePiece<S>): Observable<SamplePiece<S>> =>
      stopReason === undefined && !subscriber.closed ? request(sofar, index + 1) : EMPTY;
    return request(sofar, 0).pipe(expand(next)).subscribe(subscriber);
  });
}

/** What has been sampled, and the end of its text, where a stop string may have begun. */
class Sofar {
  readonly #pieces: Int32Array[] = [];
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #tail = '';
  count = 0;

  input(prompt: ModelInput): ModelInput {
    if (this.count === 0) return prompt;
    const tokens = new Int32Array(this.count);
    let at = 0;
    for (const piece of this.#pieces) {
      tokens.set(piece, at);
      at += piece.length;
    }
    return prompt.append({ type: 'encoded_text', tokens });
  }

  /** The sequence, cut after the token that completes a stop string begun in an earlier piece. */
  add(
    sequence: SampledSequence,
    stops: readonly string[],
    tokenizer: Pick<Tokenizer, 'decodeBytes'> | undefined,
  ): SampledSequence {
    const cut = stops.length === 0 ? -1 : this.#stopsAt(sequence.tokens, stops, tokenizer!);
    const kept = cut < 0 || sequence.stopReason === 'stop' ? sequence : shortened(sequence, cut + 1);
    this.#pieces.push(kept.tokens);
    this.count += kept.tokens.length;
    return kept;
  }

  #stopsAt(tokens: Int32Array, stops: readonly string[], tokenizer: Pick<Tokenizer, 'decodeBytes'>): number {
    const longest = Math.max(...stops.map(({ length }) => length));
    for (const [index, token] of tokens.entries()) {
      this.#tail += this.#decoder.decode(tokenizer.decodeBytes([token]), { stream: true });
      if (stops.some((stop) => this.#tail.includes(stop))) return index;
      this.#tail = this.#tail.slice(-longest);
    }
    return -1;
  }
}

function shortened(sequence: SampledSequence, length: number): SampledSequence {
  const { tokens, logprobs, topkLogprobs: topk } = sequence;
  return {
    ...sequence,
    stopReason: 'stop',
    tokens: tokens.slice(0, length),
    ...(logprobs === undefined ? {} : { logprobs: logprobs.slice(0, length) }),
    ...(topk === undefined
      ? {}
      : {
          topkLogprobs: {
            ...topk,
            length,
            tokenIds: topk.tokenIds.slice(0, length * topk.k),
            logprobs: topk.logprobs.slice(0, length * topk.k),
          },
        }),
  };
}
