import { ModelInputChunk } from '../../wire/chunk.js';
import { copyChunks, estimatePromptBytes, ModelInput } from '../../wire/modelInput.js';
import { SampleRequestWithoutPrompt, type SamplingParams } from '../../wire/sampling.js';
import { TensorData, type TensorInput } from '../../wire/tensor.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { withoutCallOptions, type CallOptions } from '../CallOptions.js';
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

/** How many tokens a prompt of text has; undefined with images or audio. @throws ValidationError for an empty prompt. */
function promptLength(prompt: ModelInput): number | undefined {
  if (!(prompt instanceof ModelInput)) throw new ValidationError('prompt must be a ModelInput');
  let length = 0;
  for (const chunk of prompt.chunks) {
    if (chunk.type !== 'encoded_text') return undefined;
    length += chunk.tokens.length;
  }
  if (length === 0) throw new ValidationError('the prompt is empty');
  return length;
}

/** The JSON of what a caller asks for but the prompt, without its last brace. @throws ValidationError */
function checkedRest(options: SampleOptions, samplingSessionId: string, recordStabilityInfo: boolean): string {
  const {
    prompt,
    numSamples,
    samplingParams = {},
    includePromptLogprobs = false,
    targetPromptLogprobs,
    promptLogprobsLastN,
    ...rest
  } = withoutCallOptions(options);
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
