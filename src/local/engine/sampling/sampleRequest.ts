import type { Choice } from './chooseToken.js';
import { EngineUserError } from '../errors.js';
import { tensorFault } from '../training/lossInputs.js';
import type { BaseModel } from '../model/baseModel.js';
import { stopRule, type StopRule } from './stopRule.js';
import type { EngineTensor, SampleRequest } from '../types.js';

/** The most samples of one request. */
export const MAX_SAMPLES = 65_536;
/** The most numbers that the answer to one request may hold. */
const MAX_NUMBERS = 2 ** 26;

/** A sample request that has been checked, with defaults filled in. */
export interface CheckedSample {
  readonly prompt: Int32Array;
  readonly numSamples: number;
  /** How many tokens may be sampled: what was asked, or what the context leaves. */
  readonly limit: number;
  readonly seed: number | undefined;
  readonly stops: StopRule;
  readonly choice: Choice;
  readonly topkSample: number;
  readonly scaledLogprobs: boolean;
  readonly scoring: PromptScoring;
}

/** What is asked about the prompt itself. */
export interface PromptScoring {
  readonly logprobs: boolean;
  /** First prompt position to score. */
  readonly from: number;
  readonly topk: number;
  readonly targets: EngineTensor | undefined;
  readonly alternatives: number;
}

/** Checks a request against the model; every complaint is a user error that names the field. */
export function checkSample(
  request: SampleRequest,
  { shape, tokens }: Pick<BaseModel, 'shape' | 'tokens'>,
): CheckedSample {
  const { prompt, numSamples = 1, temperature = 1, topK = -1, topP = 1, seed, maxTokens } = request;
  const { topkPromptLogprobs = 0, topkSampleLogprobs = 0, promptAltTokensK = 0, promptLogprobs = false } = request;
  const { length } = prompt;
  const demand = (fits: boolean, message: string) => {
    if (!fits) throw new EngineUserError(message);
  };
  const count = (name: string, value: number, from: number, to: number) =>
    demand(
      Number.isInteger(value) && value >= from && value <= to,
      `${name} must be an integer from ${from} to ${to}, got ${value}`,
    );

  demand(length > 0, 'prompt is empty');
  demand(length <= shape.context, `prompt has ${length} tokens, more than the context of ${shape.context}`);
  const bad = prompt.findIndex((token) => token < 0 || token >= shape.vocabulary);
  demand(bad < 0, `prompt has ${prompt[bad]} at ${bad}, outside the vocabulary of 0 to ${shape.vocabulary - 1}`);
  count('num_samples', numSamples, 1, MAX_SAMPLES);
  if (maxTokens !== undefined) count('max_tokens', maxTokens, 1, Number.MAX_SAFE_INTEGER);
  if (seed !== undefined) demand(Number.isSafeInteger(seed), `seed must be an integer, got ${seed}`);
  demand(temperature >= 0 && Number.isFinite(temperature), `temperature must be ≥ 0, got ${temperature}`);
  demand(Number.isInteger(topK) && topK >= -1, `top_k must be -1 or a positive integer, got ${topK}`);
  demand(topP > 0 && topP <= 1, `top_p must be in (0, 1], got ${topP}`);
  count('topk_prompt_logprobs', topkPromptLogprobs, 0, shape.vocabulary);
  count('topk_sample_logprobs', topkSampleLogprobs, 0, shape.vocabulary);
  count('prompt_alt_tokens_k', promptAltTokensK, 0, 1024);

  const limit = Math.min(maxTokens ?? Infinity, Math.max(1, shape.context - length));
  demand(
    numSamples * limit * (1 + topkSampleLogprobs) <= MAX_NUMBERS,
    `${numSamples} samples of up to ${limit} tokens with ${topkSampleLogprobs} alternatives each are more than one request may ask for`,
  );
  const lastN = request.promptLogprobsLastN;
  if (lastN !== undefined) {
    demand(promptLogprobs, 'prompt_logprobs_last_n needs prompt_logprobs');
    count('prompt_logprobs_last_n', lastN, 1, length - 1);
  }
  const targets = request.targetPromptLogprobs;
  if (targets !== undefined) checkTargets(targets, length, shape.vocabulary);
  return {
    prompt,
    numSamples,
    limit,
    seed,
    stops: stopRule(request.stop, tokens, shape.vocabulary),
    choice: { temperature, topK, topP },
    topkSample: topkSampleLogprobs,
    scaledLogprobs: request.scaledLogprobs ?? false,
    scoring: {
      logprobs: promptLogprobs,
      from: lastN === undefined ? 1 : length - lastN,
      topk: topkPromptLogprobs,
      targets,
      alternatives: promptAltTokensK,
    },
  };
}

function checkTargets(targets: EngineTensor, length: number, vocabulary: number): void {
  const name = 'target_prompt_logprobs';
  const fault = tensorFault(targets);
  if (fault !== undefined) throw new EngineUserError(`${name} ${fault}`);
  if (targets.shape.length !== 2 || targets.shape[0] !== length - 1) {
    throw new EngineUserError(`${name} has shape [${targets.shape.join(', ')}], expected [${length - 1}, K]`);
  }
  if (targets.dtype !== 'int64') throw new EngineUserError(`${name} must be int64`);
  const bad = targets.data.findIndex((token) => token < -1 || token >= vocabulary);
  if (bad >= 0)
    throw new EngineUserError(`${name} holds ${targets.data[bad]}, outside the vocabulary of 0 to ${vocabulary - 1}`);
  if (!targets.data.some((token) => token >= 0)) throw new EngineUserError(`${name} names no token`);
}
