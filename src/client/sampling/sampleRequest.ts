import { ModelInputChunk } from '../../wire/chunk.js';
import { copyChunks, estimatePromptBytes, ModelInput } from '../../wire/modelInput.js';
import type { UntypedFuture } from '../../wire/futures.js';
import {
  SampleRequestWithoutPrompt,
  type SampledSequence,
  type SampleResponse,
  type SamplingParams,
} from '../../wire/sampling.js';
import { TensorData, type TensorInput } from '../../wire/tensor.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { kindOf } from '../../support/checks.js';
import type { CallOptions } from '../CallOptions.js';
import { APIResponseValidationError } from '../errors.js';
import { prepare } from '../../wire/record.js';

/** Options of `SamplingClient.sample`. */
export interface SampleOptions extends CallOptions {
  /** What to continue. It is copied: what you change in it later changes nothing. */
  readonly prompt: ModelInput;
  /** How many continuations: an integer ≥ 1. Default 1. */
  readonly numSamples?: number;
  /** How to sample. Default: temperature 1, all tokens, up to the model's end token. */
  readonly samplingParams?: SamplingParams;
  /** Whether every prompt token is scored too. Default false. */
  readonly includePromptLogprobs?: boolean;
  /** The k most likely tokens at every prompt position. Default 0: none. */
  readonly topkPromptLogprobs?: number;
  /** The k most likely tokens at every sampled position. Default 0: none. */
  readonly topkSampleLogprobs?: number;
  /** Token ids to score at each prompt position after the first: [length − 1, K], −1 for none. */
  readonly targetPromptLogprobs?: TensorInput;
  /** Tokens to draw beside the prompt's own at each position. Default 0: none. */
  readonly promptAltTokensK?: number;
  /** Score only the last n prompt tokens; needs `includePromptLogprobs`. */
  readonly promptLogprobsLastN?: number;
}

/** A checked request and a copy of its prompt, which is written out only when it is sent, since thousands may wait. */
export class SampleRequest {
  /** What it takes from the budget of bytes. */
  readonly bytes: number;
  readonly #prompt: readonly ModelInputChunk[];
  /** The JSON of everything else, without its last brace. */
  readonly #rest: string;

  /** @throws ValidationError */
  constructor(options: SampleOptions, samplingSessionId: string, recordStabilityInfo: boolean) {
    if (typeof options !== 'object' || options === null)
      throw new ValidationError('a sample needs an object of options with a prompt');
    this.#rest = checkedRest(options, samplingSessionId, recordStabilityInfo);
    this.#prompt = copyChunks(options.prompt);
    this.bytes = estimatePromptBytes(options.prompt);
  }

  /** The JSON of the request under a number. */
  text(seqText: string): string {
    return `${this.#rest},"seq_id":${seqText},"prompt":{"chunks":[${this.#prompt.map(chunkText).join(',')}]}}`;
  }
}

const chunkText = (chunk: ModelInputChunk): string =>
  chunk.type === 'encoded_text'
    ? `{"tokens":[${chunk.tokens.join(',')}],"type":"encoded_text"}`
    : JSON.stringify(ModelInputChunk.encode(chunk));

/** The number of tokens of a text prompt; undefined with images or audio. @throws ValidationError for an empty prompt. */
function promptLength(prompt: ModelInput): number | undefined {
  if (!(prompt instanceof ModelInput))
    throw new ValidationError(`prompt must be a ModelInput, got ${insteadOf(prompt)}`);
  let length = 0;
  for (const chunk of prompt.chunks) {
    if (chunk.type !== 'encoded_text') return undefined;
    length += chunk.tokens.length;
  }
  if (length === 0) throw new ValidationError('the prompt is empty');
  return length;
}

function insteadOf(prompt: unknown): string {
  if (typeof prompt === 'string')
    return "a string: write sampler.reply('…') for a chat model, or ModelInput.fromInts(tokenizer.encode('…'))";
  if (!Array.isArray(prompt)) return kindOf(prompt);
  return `a list: write ${
    typeof prompt[0] === 'number'
      ? 'ModelInput.fromInts(tokens)'
      : 'sampler.reply(messages), or renderer.buildGenerationPrompt(messages)'
  }`;
}

/** The JSON of what a caller asks for but the prompt, without its last brace. @throws ValidationError */
function checkedRest(options: SampleOptions, samplingSessionId: string, recordStabilityInfo: boolean): string {
  const {
    signal: _signal,
    timeoutMs: _timeoutMs,
    prompt,
    numSamples,
    samplingParams = {},
    includePromptLogprobs = false,
    targetPromptLogprobs,
    promptLogprobsLastN,
    ...rest
  } = options;
  const length = promptLength(prompt);
  if (promptLogprobsLastN !== undefined) {
    if (!includePromptLogprobs) throw new ValidationError('promptLogprobsLastN needs includePromptLogprobs');
    if (length !== undefined && promptLogprobsLastN > length - 1) {
      throw new ValidationError(
        `promptLogprobsLastN must be from 1 to ${length - 1} for this prompt, got ${promptLogprobsLastN}`,
      );
    }
  }
  const { stop, ...params } = samplingParams;
  const stops = typeof stop === 'string' ? [stop] : stop === undefined ? undefined : [...stop];
  const request = prepare(SampleRequestWithoutPrompt, {
    ...rest,
    numSamples,
    samplingParams: { ...params, stop: stops as string[] | number[] | undefined },
    samplingSessionId,
    promptLogprobs: includePromptLogprobs,
    targetPromptLogprobs: targetPromptLogprobs === undefined ? undefined : targetTensor(targetPromptLogprobs, length),
    promptLogprobsLastN,
    recordStabilityInfo,
  });
  return JSON.stringify(request).slice(0, -1);
}

function targetTensor(input: TensorInput, length: number | undefined): TensorData {
  const tensor = TensorData.from(input, 'int64', 'targetPromptLogprobs');
  if (tensor.dtype !== 'int64' || tensor.shape.length !== 2)
    throw new ValidationError('targetPromptLogprobs must be int64 and [prompt length − 1, K]');
  if (length !== undefined && tensor.shape[0] !== length - 1) {
    throw new ValidationError(
      `targetPromptLogprobs must have ${length - 1} rows for this prompt, got ${tensor.shape[0] ?? 0}`,
    );
  }
  return tensor;
}

/** Names each sequence by the id that the service gave at submission, where it gives any. */
export function attachSequenceIds(
  response: SampleResponse,
  { requestId, sampleSequenceIds }: UntypedFuture,
): SampleResponse {
  if (sampleSequenceIds === undefined) return response;
  if (sampleSequenceIds.length !== response.sequences.length) {
    throw new APIResponseValidationError(
      `${sampleSequenceIds.length} sequence ids for ${response.sequences.length} sequences`,
      { requestId },
    );
  }
  // Into the response itself, which was decoded just now and which nobody else has seen.
  response.sequences.forEach((sequence: { sequenceId?: string }, index) => {
    sequence.sequenceId = sampleSequenceIds[index]!;
  });
  return response;
}

/** Some servers leave out the first prompt token, which has no logprob; here every token has its place. */
export function padPromptLogprobs(response: SampleResponse, prompt: ModelInput): SampleResponse {
  const { promptLogprobs } = response;
  if (promptLogprobs === undefined || !prompt.chunks.every((chunk) => chunk.type === 'encoded_text')) return response;
  if (promptLogprobs.length !== prompt.length - 1) return response;
  const padded = new Float32Array(prompt.length).fill(NaN);
  padded.set(promptLogprobs, 1);
  return { ...response, promptLogprobs: padded };
}

/**
 * An older server ignores what it does not know and samples anyway: fail rather than return data that is
 * not what was asked for.
 */
export function checkHonoured(
  response: SampleResponse,
  asked: { readonly promptAltTokensK?: number; readonly promptLogprobsLastN?: number },
): SampleResponse {
  const { promptAltTokensK = 0, promptLogprobsLastN } = asked;
  if (promptAltTokensK > 0 && response.promptAltTokens === undefined) {
    throw new APIResponseValidationError(
      'the service returned no alternative tokens: it may be too old for promptAltTokensK',
    );
  }
  const { promptLogprobs } = response;
  if (
    promptLogprobsLastN !== undefined &&
    promptLogprobs?.subarray(0, -promptLogprobsLastN).some((logprob) => !Number.isNaN(logprob))
  ) {
    throw new APIResponseValidationError(
      'the service scored the whole prompt: it may be too old for promptLogprobsLastN',
    );
  }
  return response;
}

/** The options that a server left out of its answer although they were asked for; what has no place there is not missed. */
export function ignoredOptions(
  { sequences, topkPromptLogprobs, targetPromptLogprobs }: SampleResponse,
  asked: SampleOptions,
): string[] {
  const ignored: string[] = [];
  const lacksTopk = ({ tokens, topkLogprobs }: SampledSequence): boolean =>
    tokens.length > 0 && topkLogprobs === undefined;
  if ((asked.topkSampleLogprobs ?? 0) > 0 && sequences.some(lacksTopk)) ignored.push('topkSampleLogprobs');
  const promptIsScored = !isOneToken(asked.prompt);
  if ((asked.topkPromptLogprobs ?? 0) > 0 && promptIsScored && topkPromptLogprobs === undefined)
    ignored.push('topkPromptLogprobs');
  if (asked.targetPromptLogprobs !== undefined && promptIsScored && targetPromptLogprobs === undefined)
    ignored.push('targetPromptLogprobs');
  return ignored;
}

/** The first token of a prompt has no score, so this prompt has none at all. */
const isOneToken = ({ chunks }: ModelInput): boolean =>
  chunks.length === 1 && chunks[0]?.type === 'encoded_text' && chunks[0].tokens.length === 1;
