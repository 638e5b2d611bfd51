import { ModelInputChunk } from '../../wire/chunk.js';
import { copyChunks, ModelInput, sameChunks } from '../../wire/modelInput.js';
import { SampleRequestWithoutPrompt, type SamplingParams } from '../../wire/sampling.js';
import { TensorData, type TensorInput } from '../../wire/tensor.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { tokenText } from '../../wire/tokenText.js';
import { withoutCallOptions, type CallOptions } from '../CallOptions.js';
import { prepare } from '../connection/prepare.js';

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

/** A checked request; its prompt is written out only when it is sent, since thousands may wait. */
export interface SampleBody {
  /** The prompt's chunks, copied. */
  readonly prompt: readonly ModelInputChunk[];
  /** The JSON of everything else, without its last brace. */
  readonly rest: string;
}

const promptText = (prompt: readonly ModelInputChunk[]): string => `{"chunks":[${prompt.map(chunkText).join(',')}]}`;

const chunkText = (chunk: ModelInputChunk): string =>
  chunk.type === 'encoded_text'
    ? `{"tokens":[${tokenText(chunk.tokens)}],"type":"encoded_text"}`
    : JSON.stringify(ModelInputChunk.encode(chunk));

const KNOWN: ReadonlySet<string> = new Set([
  'prompt',
  'numSamples',
  'samplingParams',
  'includePromptLogprobs',
  'topkPromptLogprobs',
  'topkSampleLogprobs',
  'promptAltTokensK',
  'signal',
  'timeoutMs',
]);
const MOST_REMEMBERED = 64;

/**
 * Makes the requests of one sampler. Thousands of samples differ only in their prompt, so options that were checked once
 * are remembered.
 */
export class SampleRequests {
  readonly #checked = new Map<string, string>();
  #last: LastAsked | undefined;
  /** A prompt is often sampled many times in a row. Of more than one, a WeakMap would cost more than it saves. */
  #copied: { readonly prompt: ModelInput; readonly copy: SampleBody['prompt'] } | undefined;
  #written: { readonly prompt: SampleBody['prompt']; readonly text: string } | undefined;

  constructor(
    readonly samplingSessionId: string,
    readonly recordStabilityInfo: boolean,
  ) {}

  /** @throws ValidationError */
  body(options: SampleOptions): SampleBody {
    if (typeof options !== 'object' || options === null)
      throw new ValidationError('a sample needs an object of options with a prompt');
    if (this.#last?.isAskedBy(options) === true) {
      promptLength(options.prompt);
      return { prompt: this.#copy(options.prompt), rest: this.#last.rest };
    }
    const rest = this.#rest(options);
    return { prompt: this.#copy(options.prompt), rest };
  }

  #rest(options: SampleOptions): string {
    const asked = askedFor(options);
    if (asked === undefined) return checkedRest(options, this.samplingSessionId, this.recordStabilityInfo);
    let rest = this.#checked.get(asked);
    if (rest === undefined) {
      rest = checkedRest(options, this.samplingSessionId, this.recordStabilityInfo);
      if (this.#checked.size >= MOST_REMEMBERED) this.#checked.clear();
      this.#checked.set(asked, rest);
    } else promptLength(options.prompt);
    this.#last = new LastAsked(options, rest);
    return rest;
  }

  /** The prompt as it is now: it may wait for long, and its arrays are the caller's. */
  #copy(prompt: ModelInput): SampleBody['prompt'] {
    if (this.#copied?.prompt !== prompt || !sameChunks(this.#copied.copy, prompt))
      this.#copied = { prompt, copy: copyChunks(prompt) };
    return this.#copied.copy;
  }

  /** The JSON of a request under a number. */
  text({ prompt, rest }: SampleBody, seqText: string): string {
    if (this.#written?.prompt !== prompt) this.#written = { prompt, text: promptText(prompt) };
    return `${rest},"seq_id":${seqText},"prompt":${this.#written.text}}`;
  }
}

const SCALARS = [
  'numSamples',
  'includePromptLogprobs',
  'topkPromptLogprobs',
  'topkSampleLogprobs',
  'promptAltTokensK',
] as const;

/** What was asked for last: to compare with that costs a tenth of writing it as text. */
class LastAsked {
  readonly #options: SampleOptions;
  readonly #params: Readonly<Record<string, unknown>>;
  readonly #paramCount: number;

  /** @param rest the JSON of it */
  constructor(
    options: SampleOptions,
    readonly rest: string,
  ) {
    this.#options = { ...options };
    this.#params = { ...options.samplingParams };
    this.#paramCount = Object.keys(this.#params).length;
  }

  isAskedBy(options: SampleOptions): boolean {
    for (const key in options) if (!KNOWN.has(key)) return false;
    for (const name of SCALARS) if (options[name] !== this.#options[name]) return false;
    const params = options.samplingParams as Readonly<Record<string, unknown>> | null | undefined;
    if (params === null) return false;
    let count = 0;
    for (const key in params) {
      // A list of stops may have changed and still be the same list.
      if (params[key] !== this.#params[key] || typeof params[key] === 'object') return false;
      count++;
    }
    return count === this.#paramCount;
  }
}

/** All that is asked for but the prompt, as text; undefined where a text would not tell it apart from something else. */
function askedFor(options: SampleOptions): string | undefined {
  for (const key in options) if (!KNOWN.has(key)) return undefined;
  const { samplingParams } = options;
  for (const key in samplingParams) if (!isWritten(samplingParams[key as keyof SamplingParams])) return undefined;
  const scalars = SCALARS.map((name) => options[name]);
  return scalars.every(isWritten) ? JSON.stringify([samplingParams, ...scalars]) : undefined;
}

/** Whether JSON writes the value as it is. It leaves some out or writes null, and that would pass for another request. */
function isWritten(value: unknown): boolean {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value);
    case 'object':
      return value !== null;
    case 'function':
    case 'symbol':
    case 'bigint':
      return false;
    default:
      return true;
  }
}

/** How many tokens a prompt of text has; undefined with images or audio. @throws ValidationError for an empty prompt. */
function promptLength(prompt: ModelInput): number | undefined {
  if (!(prompt instanceof ModelInput)) throw new ValidationError('prompt must be a ModelInput');
  const isText = prompt.chunks.every((chunk) => chunk.type === 'encoded_text');
  const length = isText ? prompt.length : undefined;
  if (prompt.chunks.length === 0 || length === 0) throw new ValidationError('the prompt is empty');
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
